package cairn

// #include "shim.h"
import "C"

// Policy is what happens to a region's activations between forward and backward.
type Policy uint32

// Policies. The innermost one that is not PlannerDecides holds.
const (
	PlannerDecides Policy = C.CAIRN_REGION_PLANNER_DECIDES // each value as the plan finds best
	Keep           Policy = C.CAIRN_REGION_KEEP
	Recompute      Policy = C.CAIRN_REGION_RECOMPUTE
	Offload        Policy = C.CAIRN_REGION_OFFLOAD
)

// String is the word for a policy: planner, keep, recompute or offload.
func (p Policy) String() string { return word(uint32(p), "planner", "keep", "recompute", "offload") }

// RegionOptions are how a region is treated.
type RegionOptions struct {
	Policy Policy
	Tier   Tier // with Offload: TierHost or TierDisk; 0: the plan's first tier
}

// Region puts the ops that build adds into a region. Its name is unique among its siblings; regions nest to depth 8. The region
// ends with build, also where that panics.
func (g *Graph) Region(name string, options RegionOptions, build func()) {
	var region C.cairn_region_t
	began := g.attempt(func() error {
		if err := checkTexts("name", name); err != nil {
			return err
		}
		if build == nil {
			return invalid("region '%s' has no function that builds it", name)
		}
		return capture(func(e *C.cairn_error_t) C.cairn_status_t {
			return C.cairn_go_region_begin(g.c(), cstring(name), C.uint32_t(options.Policy), C.uint32_t(options.Tier), &region, e)
		}, nil)
	})
	if began {
		// A failure inside is kept, and the region ends nevertheless: ClearErr leaves a graph that can be built on.
		defer func() {
			_ = do(func(e *C.cairn_error_t) C.cairn_status_t { return C.cairn_graph_region_end(g.c(), region, e) }, g.it())
		}()
	}
	if build != nil {
		build()
	}
}
