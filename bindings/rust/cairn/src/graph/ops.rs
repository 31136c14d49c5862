//! A method for every op of the library. Made from `cairn ops --json` by make_bindings.sh. Do not edit.
use super::builder::GraphBuilder;
use super::op::{made, Op};
use super::value::Value;
use crate::error::Result;

/// One method for each op that the library of this crate's version knows; [`GraphBuilder::op`] takes any by its name.
/// Operands and attributes that must be given are arguments, others are methods of what is returned.
impl GraphBuilder {
    /// Begins the op `embedding`: y\[.., C\] = table\[ids\[..\]\]; an id outside \[0, V) makes the row zero (the host's
    /// ids are checked when they are written). dtype: of y; default the table's.
    pub fn embedding(&mut self, table: Value, ids: Value) -> Embedding<'_> {
        Embedding(Op::new(self, "embedding", &[table, ids]))
    }

    /// Begins the op `linear`: y\[.., N\] = act(x\[.., K\] w\[N, K\]^T + b\[N\]); pre: the argument of act, there
    /// unless its gradient reads y, as relu's does. activation: gelu\_tanh, gelu\_erf, relu, silu, sigmoid, tanh;
    /// default none.
    pub fn linear(&mut self, x: Value, w: Value) -> Linear<'_> {
        Linear(Op::new(self, "linear", &[x, w]))
    }

    /// Begins the op `matmul`: y\[.., M, N\] = a\[.., M, K\] b\[.., K, N\], the product of each pair of matrices;
    /// leading dimensions broadcast as for add. transpose\_a, transpose\_b: 1 where the operand is stored the other way
    /// round, a\[.., K, M\], b\[.., N, K\].
    pub fn matmul(&mut self, a: Value, b: Value) -> Matmul<'_> {
        Matmul(Op::new(self, "matmul", &[a, b]))
    }

    /// Begins the op `layernorm`: y = (x - mean) rstd gamma + beta over the last axis; mean\[..\] and rstd\[..\] are
    /// float32 (float64 in float64 graphs). eps: added to the variance; default 1e-5.
    pub fn layernorm(&mut self, x: Value) -> Layernorm<'_> {
        Layernorm(Op::new(self, "layernorm", &[x]))
    }

    /// Begins the op `rmsnorm`: y = x rstd (gamma + offset) over the last axis, rstd = 1 / sqrt(mean of x^2 + eps),
    /// float32 (float64 in float64 graphs). eps: default 1e-5. offset: default 0; 1 where weights are stored as what
    /// they differ from 1 by.
    pub fn rmsnorm(&mut self, x: Value) -> Rmsnorm<'_> {
        Rmsnorm(Op::new(self, "rmsnorm", &[x]))
    }

    /// Begins the op `attention`: y = softmax(scale q k^T) v by head. q\[B, T, H\*D\], k and v\[B, S, G\*D\] with G =
    /// kv\_heads (default heads, which it divides); or q alone, packed \[B, T, (H + 2G)\*D\] as q\|k\|v, and S = T.
    /// y\[B, T, H\*D\]; lse\[B, H, T\] float32: the log-sum-exp of each row of scores. causal (default 1): position t
    /// sees 0..t. scale: default 1 / sqrt(D). window: t sees s only where s \> t - window, and, where not causal, s \<
    /// t + window. softcap: scores are softcap tanh(scale q k^T / softcap). sinks\[H\]: one more score of each row of a
    /// head, which has no value. sequences\[B, T\] i32: t sees s only where both have the same number; a negative one
    /// is padding, which sees nothing and is not seen. lengths\[B\] i32: keys s \< lengths\[b\] alone are seen.
    /// position\[B\] i32: row t of q stands at position\[b\] + t among the keys, of a cache for instance; S may differ
    /// from T only with it, or where neither causal nor window asks where a row stands. distances\[H, T + S - 1\]:
    /// numbers that are added to scale q k^T, \[h, s - t + T - 1\] for row t and key s; not together with position. A
    /// row that sees no key has y = 0, lse = -infinity and no gradient. Scores are never all in memory, and keys that
    /// no row of a block sees are skipped.
    pub fn attention(&mut self, q: Value, heads: i64) -> Attention<'_> {
        Attention(Op::new(self, "attention", &[q]).attr("heads", heads))
    }

    /// Begins the op `relative_bias`: What attention adds by distance (Raffel et al., 2020): distances\[H, T + S - 1\]
    /// from table\[buckets, H\], T = queries, S = keys. Entry s - t + T - 1 is the bucket's of the distance s - t: near
    /// ones have a bucket each, farther ones share them by their logarithm, and those from farthest (default 128) on
    /// share the last. bidirectional (default 1): keys after a row have one half of the buckets; 0: they have the
    /// bucket of distance 0.
    pub fn relative_bias(&mut self, table: Value, queries: i64, keys: i64) -> RelativeBias<'_> {
        RelativeBias(Op::new(self, "relative_bias", &[table]).attr("queries", queries).attr("keys", keys))
    }

    /// Begins the op `rope`: Rotary positions (Su et al., 2021), x\[B, T, H\*D\]: the element pairs (i, i + R/2) of the
    /// first R columns of each head turn by position \* base^(-2i/R); the other columns pass. positions\[B, T\] i32;
    /// default t. columns: R, even; default D. base: default 10000. frequencies: R/2 numbers, radians per position,
    /// instead of base's. interleaved: 1 where the pairs are (2i, 2i + 1). factor: what the turned pairs are multiplied
    /// by; default 1. inverse: 1 turns the other way, which is the gradient.
    pub fn rope(&mut self, x: Value, heads: i64) -> Rope<'_> {
        Rope(Op::new(self, "rope", &[x]).attr("heads", heads))
    }

    /// Begins the op `route`: experts\[.., k\] i32: the numbers of the k largest of logits\[.., E\], the largest first,
    /// of equal ones the first; NaN is larger than any number. weights\[.., k\] float32 (float64): the softmax of the
    /// chosen logits, or, with normalise (default 1) 0, their part of the softmax of all. The choice has no gradient,
    /// and is never recomputed: what backward reads is kept.
    pub fn route(&mut self, logits: Value, k: i64) -> Route<'_> {
        Route(Op::new(self, "route", &[logits]).attr("k", k))
    }

    /// Begins the op `group_rows`: Choices experts\[.., k\] i32, sorted by expert, of one expert in the order in which
    /// they stand: order\[M\] i32, the number (row k + column) of each sorted choice; places\[.., k\] i32, where each
    /// choice went; starts\[E + 1\] i32, where each expert's choices begin, and M. experts: E. A number outside \[0, E)
    /// counts as the nearest one.
    pub fn group_rows(&mut self, experts: Value, experts_attr: i64) -> GroupRows<'_> {
        GroupRows(Op::new(self, "group_rows", &[experts]).attr("experts", experts_attr))
    }

    /// Begins the op `count_choices`: counts\[E\] float32: how often each number is in experts\[.., k\] i32. experts:
    /// E. A number outside \[0, E) counts as the nearest one.
    pub fn count_choices(&mut self, experts: Value, experts_attr: i64) -> CountChoices<'_> {
        CountChoices(Op::new(self, "count_choices", &[experts]).attr("experts", experts_attr))
    }

    /// Begins the op `gather_rows`: y\[m\] = x\[order\[m\] / k\] for rows of x\[.., C\], times the number order\[m\] of
    /// weights\[.., k\] float32 (float64): y\[M, C\], by expert. order and places\[.., k\]: group\_rows'; places is for
    /// the gradient. A row of y whose number is outside of x is zero.
    pub fn gather_rows(&mut self, x: Value, order: Value, places: Value) -> GatherRows<'_> {
        GatherRows(Op::new(self, "gather_rows", &[x, order, places]))
    }

    /// Begins the op `combine_rows`: y\[r\] = sum over j of weights\[r, j\] x\[places\[r, j\]\], one after the other,
    /// in float32 (float64), rounded once: x\[M, C\] to y\[.., C\]. order\[M\] and places\[.., k\]: group\_rows'; order
    /// is for the gradient. weights\[.., k\] float32 (float64): default 1. A place outside of x adds nothing.
    pub fn combine_rows(&mut self, x: Value, order: Value, places: Value) -> CombineRows<'_> {
        CombineRows(Op::new(self, "combine_rows", &[x, order, places]))
    }

    /// Begins the op `grouped_linear`: Rows \[starts\[e\], starts\[e + 1\]) of y\[M, N\] = those of x\[M, K\]
    /// w\[e\]^T + b\[e\], for each of the experts of w\[E, N, K\] and b\[E, N\]. starts\[E + 1\] i32: group\_rows',
    /// which ascend from 0 to M. transposed: 1 where the weights are stored as w\[E, K, N\].
    pub fn grouped_linear(&mut self, x: Value, w: Value, starts: Value) -> GroupedLinear<'_> {
        GroupedLinear(Op::new(self, "grouped_linear", &[x, w, starts]))
    }

    /// Begins the op `conv`: Convolution, w\[O, kh, kw, C / groups\] (w\[O, k, C / groups\]): y\[n, i, j, o\] =
    /// b\[o\] + sum over taps and channels of x\[n, i stride + tap dilation - padding, ..\] w\[o, tap, ..\]. Output o
    /// of group g sees the channels of group g alone. stride, dilation: default 1; padding: default 0. A causal
    /// convolution over time has padding {dilation (k - 1), 0}.
    pub fn conv(&mut self, x: Value, w: Value) -> Conv<'_> {
        Conv(Op::new(self, "conv", &[x, w]))
    }

    /// Begins the op `conv_transpose`: Transposed convolution: what the gradient x\[N, .., O\] of a convolution's
    /// output makes its input get, with that convolution's w\[O, kh, kw, C / groups\] and attributes: y\[N, .., C\].
    /// size: spatial sizes of y; default the smallest.
    pub fn conv_transpose(&mut self, x: Value, w: Value) -> ConvTranspose<'_> {
        ConvTranspose(Op::new(self, "conv_transpose", &[x, w]))
    }

    /// Begins the op `max_pool`: y: the largest of each window's elements, NaN being larger than any number; places
    /// i32: where it is, h W + w, of equal ones the first. stride: default kernel. size: instead of kernel the sizes of
    /// y, whose windows share x out (adaptive).
    pub fn max_pool(&mut self, x: Value) -> MaxPool<'_> {
        MaxPool(Op::new(self, "max_pool", &[x]))
    }

    /// Begins the op `average_pool`: y: the mean of each window. Attributes as max\_pool's. count\_padding: 1 (default)
    /// counts padding as zeros, 0 leaves it out.
    pub fn average_pool(&mut self, x: Value) -> AveragePool<'_> {
        AveragePool(Op::new(self, "average_pool", &[x]))
    }

    /// Begins the op `resize`: x at other spatial sizes. mode: nearest (default) or bilinear, which weighs the nearest
    /// 2 (4) elements by their distance from the place (o + 1/2) in / out - 1/2; with align\_corners 1 from o (in - 1)
    /// / (out - 1).
    pub fn resize(&mut self, x: Value, size: &[i64]) -> Resize<'_> {
        Resize(Op::new(self, "resize", &[x]).attr("size", size))
    }

    /// Begins the op `pad`: x with so many elements of `value` (default 0) before and after each axis.
    pub fn pad(&mut self, x: Value, before: &[i64], after: &[i64]) -> Pad<'_> {
        Pad(Op::new(self, "pad", &[x]).attr("before", before).attr("after", after))
    }

    /// Begins the op `patches`: Windows as rows: y\[N, OH, OW, kh kw C\], element after element of the window, each
    /// with its channels; zeros outside of x.
    pub fn patches(&mut self, x: Value, kernel: &[i64]) -> Patches<'_> {
        Patches(Op::new(self, "patches", &[x]).attr("kernel", kernel))
    }

    /// Begins the op `batchnorm`: y = (x - mean) / sqrt(variance + eps) gamma + beta by channel of x\[.., C\];
    /// mean\[C\] and variance\[C\], over all other axes, of which variance is divided by their number of elements, are
    /// float32 (float64 in float64 graphs). eps: default 1e-5.
    pub fn batchnorm(&mut self, x: Value) -> Batchnorm<'_> {
        Batchnorm(Op::new(self, "batchnorm", &[x]))
    }

    /// Begins the op `normalize`: y = (x - mean) / sqrt(variance + eps) gamma + beta by channel of x\[.., C\], with
    /// statistics that are given: batchnorm in evaluation. They get no gradient. eps: default 1e-5.
    pub fn normalize(&mut self, x: Value, mean: Value, variance: Value) -> Normalize<'_> {
        Normalize(Op::new(self, "normalize", &[x, mean, variance]))
    }

    /// Begins the op `groupnorm`: y = (x - mean) rstd gamma + beta of x\[N, .., C\]; mean\[N, G\] and rstd\[N, G\] are
    /// of a sample's group of C / G channels, over all axes between, in float32 (float64). gamma\[C\], beta\[C\].
    /// groups: G. eps: default 1e-5.
    pub fn groupnorm(&mut self, x: Value, groups: i64) -> Groupnorm<'_> {
        Groupnorm(Op::new(self, "groupnorm", &[x]).attr("groups", groups))
    }

    /// Begins the op `l2_normalize`: y = x / max(norm, eps) over the last axis, norm\[..\] = sqrt(sum of x^2), float32
    /// (float64). eps: default 1e-12.
    pub fn l2_normalize(&mut self, x: Value) -> L2Normalize<'_> {
        L2Normalize(Op::new(self, "l2_normalize", &[x]))
    }

    /// Begins the op `lstm`: Long short-term memory (Hochreiter and Schmidhuber, 1997): with i, f, g, o the four parts
    /// of gates\[b, t\] + w\[4H, H\] y\[b, t - 1\], c = sigmoid(f) c\[b, t - 1\] + sigmoid(i) tanh(g), y = sigmoid(o)
    /// tanh(c): y\[B, T, H\]; c\[B, T, H\] float32 (float64). saved\[B, T, 4H\]: sigmoid(i), sigmoid(f), tanh(g),
    /// sigmoid(o). h0\[B, H\], c0\[B, H\] float32: y and c before the first step; default 0. reverse: 1 goes from the
    /// last step to the first.
    pub fn lstm(&mut self, gates: Value, w: Value) -> Lstm<'_> {
        Lstm(Op::new(self, "lstm", &[gates, w]))
    }

    /// Begins the op `gru`: Gated recurrent unit (Cho et al., 2014): with r, z, n the three parts of gates\[b, t\], and
    /// those of h = w\[3H, H\] y\[b, t - 1\] + b\[3H\]: y = (1 - z) n + z y\[b, t - 1\], where r and z are sigmoids of
    /// sums, n = tanh(gates\_n + r h\_n): y\[B, T, H\]. saved\[B, T, 4H\]: r, z, n, h\_n. h0\[B, H\]: y before the
    /// first step; default 0. reverse: as lstm's.
    pub fn gru(&mut self, gates: Value, w: Value) -> Gru<'_> {
        Gru(Op::new(self, "gru", &[gates, w]))
    }

    /// Begins the op `gelu`: y = x Phi(x). approximate: tanh (default) or erf.
    pub fn gelu(&mut self, x: Value) -> Gelu<'_> {
        Gelu(Op::new(self, "gelu", &[x]))
    }

    /// Begins the op `relu`: y = max(x, 0).
    pub fn relu(&mut self, x: Value) -> Relu<'_> {
        Relu(Op::new(self, "relu", &[x]))
    }

    /// Begins the op `silu`: y = x / (1 + exp(-x)).
    pub fn silu(&mut self, x: Value) -> Silu<'_> {
        Silu(Op::new(self, "silu", &[x]))
    }

    /// Begins the op `sigmoid`: y = 1 / (1 + exp(-x)).
    pub fn sigmoid(&mut self, x: Value) -> Sigmoid<'_> {
        Sigmoid(Op::new(self, "sigmoid", &[x]))
    }

    /// Begins the op `tanh`: y = (exp(x) - exp(-x)) / (exp(x) + exp(-x)).
    pub fn tanh(&mut self, x: Value) -> Tanh<'_> {
        Tanh(Op::new(self, "tanh", &[x]))
    }

    /// Begins the op `softplus`: y = log(1 + exp(x)).
    pub fn softplus(&mut self, x: Value) -> Softplus<'_> {
        Softplus(Op::new(self, "softplus", &[x]))
    }

    /// Begins the op `exp`: y = e^x, the exponential of x.
    pub fn exp(&mut self, x: Value) -> Exp<'_> {
        Exp(Op::new(self, "exp", &[x]))
    }

    /// Begins the op `log`: y = the natural logarithm of x: minus infinity at 0, not a number below.
    pub fn log(&mut self, x: Value) -> Log<'_> {
        Log(Op::new(self, "log", &[x]))
    }

    /// Begins the op `sqrt`: y = the square root of x: not a number below 0; its gradient is infinite at 0.
    pub fn sqrt(&mut self, x: Value) -> Sqrt<'_> {
        Sqrt(Op::new(self, "sqrt", &[x]))
    }

    /// Begins the op `abs`: y = \|x\|; the gradient at 0 is 0.
    pub fn abs(&mut self, x: Value) -> Abs<'_> {
        Abs(Op::new(self, "abs", &[x]))
    }

    /// Begins the op `clamp`: y = x, but min where it is less and max where it is more; one of the two may be left out.
    /// The gradient passes where min \<= x \<= max.
    pub fn clamp(&mut self, x: Value) -> Clamp<'_> {
        Clamp(Op::new(self, "clamp", &[x]))
    }

    /// Begins the op `pow`: y = x^exponent, of a number: for an exponent that is a value, exp(exponent log(x)).
    pub fn pow(&mut self, x: Value, exponent: f64) -> Pow<'_> {
        Pow(Op::new(self, "pow", &[x]).attr("exponent", exponent))
    }

    /// Begins the op `softcap`: y = cap tanh(x / cap): x while it is small, and never beyond -cap and cap.
    pub fn softcap(&mut self, x: Value, cap: f64) -> Softcap<'_> {
        Softcap(Op::new(self, "softcap", &[x]).attr("cap", cap))
    }

    /// Begins the op `swiglu`: y = silu(gate) up.
    pub fn swiglu(&mut self, gate: Value, up: Value) -> Swiglu<'_> {
        Swiglu(Op::new(self, "swiglu", &[gate, up]))
    }

    /// Begins the op `glu`: y = act(gate) up. activation: silu (default), gelu (by erf), gelu\_tanh, relu; or
    /// swish\_clamped, with gate of at most limit and up within -limit and limit: y = gate sigmoid(1.702 gate) (up +
    /// 1). limit: default 7; for swish\_clamped alone.
    pub fn glu(&mut self, gate: Value, up: Value) -> Glu<'_> {
        Glu(Op::new(self, "glu", &[gate, up]))
    }

    /// Begins the op `add`: y = a + b. Shapes broadcast by NumPy's rules: aligned at the last axis, an axis of 1 or one
    /// that is missing is repeated (a\[.., C\] + b\[C\], a\[B, 1, T\] + b\[H, 1\]). y has a's type; b may be float32
    /// with a bf16 a.
    pub fn add(&mut self, a: Value, b: Value) -> Add<'_> {
        Add(Op::new(self, "add", &[a, b]))
    }

    /// Begins the op `mul`: y = a b; shapes as for add.
    pub fn mul(&mut self, a: Value, b: Value) -> Mul<'_> {
        Mul(Op::new(self, "mul", &[a, b]))
    }

    /// Begins the op `sub`: y = a - b; shapes as for add.
    pub fn sub(&mut self, a: Value, b: Value) -> Sub<'_> {
        Sub(Op::new(self, "sub", &[a, b]))
    }

    /// Begins the op `div`: y = a / b; shapes as for add.
    pub fn div(&mut self, a: Value, b: Value) -> Div<'_> {
        Div(Op::new(self, "div", &[a, b]))
    }

    /// Begins the op `minimum`: y = the lesser of a and b, not a number where one of them is not; where they are equal,
    /// each gets half the gradient. Shapes as for add.
    pub fn minimum(&mut self, a: Value, b: Value) -> Minimum<'_> {
        Minimum(Op::new(self, "minimum", &[a, b]))
    }

    /// Begins the op `maximum`: y = the greater of a and b; otherwise as minimum.
    pub fn maximum(&mut self, a: Value, b: Value) -> Maximum<'_> {
        Maximum(Op::new(self, "maximum", &[a, b]))
    }

    /// Begins the op `less`: y = 1 where a \< b, else 0. It has no slope: no gradient goes back through it. Shapes as
    /// for add.
    pub fn less(&mut self, a: Value, b: Value) -> Less<'_> {
        Less(Op::new(self, "less", &[a, b]))
    }

    /// Begins the op `less_equal`: y = 1 where a \<= b, else 0. It has no slope: no gradient goes back through it.
    /// Shapes as for add.
    pub fn less_equal(&mut self, a: Value, b: Value) -> LessEqual<'_> {
        LessEqual(Op::new(self, "less_equal", &[a, b]))
    }

    /// Begins the op `greater`: y = 1 where a \> b, else 0. It has no slope: no gradient goes back through it. Shapes
    /// as for add.
    pub fn greater(&mut self, a: Value, b: Value) -> Greater<'_> {
        Greater(Op::new(self, "greater", &[a, b]))
    }

    /// Begins the op `greater_equal`: y = 1 where a \>= b, else 0. It has no slope: no gradient goes back through it.
    /// Shapes as for add.
    pub fn greater_equal(&mut self, a: Value, b: Value) -> GreaterEqual<'_> {
        GreaterEqual(Op::new(self, "greater_equal", &[a, b]))
    }

    /// Begins the op `equal`: y = 1 where a == b, else 0. It has no slope: no gradient goes back through it. Shapes as
    /// for add.
    pub fn equal(&mut self, a: Value, b: Value) -> Equal<'_> {
        Equal(Op::new(self, "equal", &[a, b]))
    }

    /// Begins the op `not_equal`: y = 1 where a != b, else 0. It has no slope: no gradient goes back through it. Shapes
    /// as for add.
    pub fn not_equal(&mut self, a: Value, b: Value) -> NotEqual<'_> {
        NotEqual(Op::new(self, "not_equal", &[a, b]))
    }

    /// Begins the op `where`: y = a where cond is not 0, else b; the shapes of all three broadcast as for add. cond,
    /// such as a comparison makes, gets no gradient.
    pub fn where_(&mut self, cond: Value, a: Value, b: Value) -> Where<'_> {
        Where(Op::new(self, "where", &[cond, a, b]))
    }

    /// Begins the op `scale`: y = factor x.
    pub fn scale(&mut self, x: Value, factor: f64) -> Scale<'_> {
        Scale(Op::new(self, "scale", &[x]).attr("factor", factor))
    }

    /// Begins the op `dropout`: y = x keep / (1 - rate), 0 \<= rate \< 1; element e is kept if
    /// uniform(random\_block(key with op = rng, e / 4)\[e % 4\]) \>= rate. rng: set by the graph, the same for the op
    /// and its gradient. first: the number of x's first element, a multiple of 4; default 0.
    pub fn dropout(&mut self, x: Value, rate: f64) -> Dropout<'_> {
        Dropout(Op::new(self, "dropout", &[x]).attr("rate", rate))
    }

    /// Begins the op `softmax`: y = exp(x - max) / sum over the last axis.
    pub fn softmax(&mut self, x: Value) -> Softmax<'_> {
        Softmax(Op::new(self, "softmax", &[x]))
    }

    /// Begins the op `linear_cross_entropy`: cross\_entropy of logits = x\[.., C\] w\[V, C\]^T, which are made in
    /// chunks of rows and never stored all at once. chunk: rows of one; 0 (default): the kernel chooses. accuracy: 1
    /// makes hits and count, accuracy's of those logits. scale: what logits are multiplied by; default 1. softcap: with
    /// it they are softcap tanh(logits / softcap) after that.
    pub fn linear_cross_entropy(&mut self, x: Value, w: Value, targets: Value) -> LinearCrossEntropy<'_> {
        LinearCrossEntropy(Op::new(self, "linear_cross_entropy", &[x, w, targets]))
    }

    /// Begins the op `cross_entropy`: loss = sum of weights\[..\] \* (log-sum-exp of logits\[.., V\] - the target's
    /// logit), weight = sum of weights; float64 scalars, which the step controller divides. targets\[..\] i32;
    /// weights\[..\] float32, default 1; ignore\_index (default -100) has weight 0, any other target outside \[0, V)
    /// makes the loss NaN. class\_weights\[V\] float32: a row's weight is multiplied by that of its target. smoothing,
    /// in \[0, 1): of label smoothing, the share of the target that all V classes have alike; it does not go together
    /// with class\_weights.
    pub fn cross_entropy(&mut self, logits: Value, targets: Value) -> CrossEntropy<'_> {
        CrossEntropy(Op::new(self, "cross_entropy", &[logits, targets]))
    }

    /// Begins the op `accuracy`: hits: how many rows of logits\[.., V\] are largest at their target, the first of equal
    /// numbers being the largest, and none with a NaN; count: how many rows there are; whole numbers as float64
    /// scalars, to be summed over micro-batches. targets\[..\] i32; a row whose target is ignore\_index (default -100),
    /// or whose weight\[..\] is 0, is in neither; any other target outside \[0, V) is no hit. top: a hit is a target
    /// among so many of the largest; default 1. It has no gradient.
    pub fn accuracy(&mut self, logits: Value, targets: Value) -> Accuracy<'_> {
        Accuracy(Op::new(self, "accuracy", &[logits, targets]))
    }

    /// Begins the op `mse`: loss = sum of weights\[..\] \* (x - y)^2 over all elements of x\[.., C\] and y\[.., C\],
    /// weight = C \* sum of weights; float64 scalars, which the step controller divides. weights\[..\] float32, default
    /// 1.
    pub fn mse(&mut self, x: Value, y: Value) -> Mse<'_> {
        Mse(Op::new(self, "mse", &[x, y]))
    }

    /// Begins the op `pair_loss`: A loss of all pairs of rows of a\[N, D\] and b\[N, D\], of which rows of equal number
    /// belong together, by s\_ij = scale a\_i b\_j + bias; scale\[1\], bias\[1\] float32. kind: sigmoid (Zhai et al.,
    /// 2023): loss = the sum of softplus(-s\_ii) and of softplus(s\_ij), j != i; weight = N. triplet: loss = the sum of
    /// max(0, margin + s\_ij - s\_ii), j != i; weight = N (N - 1). margin: default 0.2. Float64 scalars, which the step
    /// controller divides. The N x N numbers are never in memory.
    pub fn pair_loss(&mut self, a: Value, b: Value, scale: Value, kind: &str) -> PairLoss<'_> {
        PairLoss(Op::new(self, "pair_loss", &[a, b, scale]).attr("kind", kind))
    }

    /// Begins the op `reshape`: x's bytes under another shape; costs nothing. shape: one -1 is worked out.
    pub fn reshape(&mut self, x: Value, shape: &[i64]) -> Reshape<'_> {
        Reshape(Op::new(self, "reshape", &[x]).attr("shape", shape))
    }

    /// Begins the op `detach`: y = x, a constant to backward: no gradient goes back through it. It costs nothing.
    pub fn detach(&mut self, x: Value) -> Detach<'_> {
        Detach(Op::new(self, "detach", &[x]))
    }

    /// Begins the op `transpose`: Axes in the order of perm.
    pub fn transpose(&mut self, x: Value, perm: &[i64]) -> Transpose<'_> {
        Transpose(Op::new(self, "transpose", &[x]).attr("perm", perm))
    }

    /// Begins the op `slice`: Elements \[begin, end) along axis.
    pub fn slice(&mut self, x: Value, axis: i64, begin: i64, end: i64) -> Slice<'_> {
        Slice(Op::new(self, "slice", &[x]).attr("axis", axis).attr("begin", begin).attr("end", end))
    }

    /// Begins the op `concat`: Up to eight values, one after the other along axis.
    pub fn concat(&mut self, x0: Value, axis: i64) -> Concat<'_> {
        Concat(Op::new(self, "concat", &[x0]).attr("axis", axis))
    }

    /// Begins the op `reduce_sum`: Sums over axes (default all). keep: 1 leaves dimensions of 1.
    pub fn reduce_sum(&mut self, x: Value) -> ReduceSum<'_> {
        ReduceSum(Op::new(self, "reduce_sum", &[x]))
    }

    /// Begins the op `reduce_mean`: Means over axes (default all). keep: 1 leaves dimensions of 1.
    pub fn reduce_mean(&mut self, x: Value) -> ReduceMean<'_> {
        ReduceMean(Op::new(self, "reduce_mean", &[x]))
    }

    /// Begins the op `cast`: x as another dtype, rounded to nearest even.
    pub fn cast(&mut self, x: Value, dtype: &str) -> Cast<'_> {
        Cast(Op::new(self, "cast", &[x]).attr("dtype", dtype))
    }

    /// Begins the op `running_mean`: statistic\[C\] moves to the mean of the rows of x\[.., C\], once per optimizer
    /// step: statistic += momentum (mean - statistic), where the mean is over all micro-batches of the step. A step
    /// that is skipped moves nothing, nor does a graph without a loss. One such op moves a statistic. momentum: default
    /// 0.1. sums\[C + 1\], float64: sums of the columns and the number of rows.
    pub fn running_mean(&mut self, x: Value, statistic: Value) -> RunningMean<'_> {
        RunningMean(Op::new(self, "running_mean", &[x, statistic]))
    }

    /// Begins the op `append`: Rows of x into the cache, in the cache's dtype; y is the cache after that. cache\[N,
    /// ..\], x\[m, ..\]: row i of x becomes row position\[1\] + i. cache\[B, N, ..\], x\[B, m, ..\] with position\[B\],
    /// where the cache has three axes or more: the same for each of B samples at a position of its own. count\[B\]: of
    /// each sample, the first so many rows of x alone; default m. Rows that fall outside of the cache are left out.
    /// ring: 1 counts rows modulo N, so that the cache holds the last N.
    pub fn append(&mut self, cache: Value, x: Value, position: Value) -> Append<'_> {
        Append(Op::new(self, "append", &[cache, x, position]))
    }

    /// Begins the op `effective`: A value of the effective batch: y\[K \* m, ..\] has the rows x\[m, ..\] of its K
    /// micro-batches, one after the other. What is computed of y is computed once per effective batch, as the loss has
    /// to be: losses of pairs of rows are then exact. A step runs every micro-batch twice, at first without backward
    /// (runtime/step). micro\_steps: K; 1 is x itself.
    pub fn effective(&mut self, x: Value, micro_steps: i64) -> Effective<'_> {
        Effective(Op::new(self, "effective", &[x]).attr("micro_steps", micro_steps))
    }

    /// Begins the op `row_numbers`: y\[N\] i32 = 0, 1, .. N - 1 for x\[N, ..\]: the targets where row i of one value
    /// belongs to row i of another.
    pub fn row_numbers(&mut self, x: Value) -> RowNumbers<'_> {
        RowNumbers(Op::new(self, "row_numbers", &[x]))
    }
}

/// The op `embedding`, begun by [`GraphBuilder::embedding`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Embedding<'g>(Op<'g>);

impl<'g> Embedding<'g> {
    /// The attribute `dtype`, which may be left out.
    pub fn dtype(self, dtype: &str) -> Self {
        Self(self.0.attr("dtype", dtype))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `linear`, begun by [`GraphBuilder::linear`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Linear<'g>(Op<'g>);

impl<'g> Linear<'g> {
    /// The operand `b`, which may be left out.
    pub fn b(self, b: Value) -> Self {
        Self(self.0.input(2, b))
    }

    /// The attribute `activation`, which may be left out.
    pub fn activation(self, activation: &str) -> Self {
        Self(self.0.attr("activation", activation))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<LinearOutputs> {
        let [y, pre] = self.0.build_all()?;
        Ok(LinearOutputs { y: made(y)?, pre })
    }
}

/// What the op `linear` makes; its text is at [`GraphBuilder::linear`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct LinearOutputs {
    /// The output `y`.
    pub y: Value,
    /// The output `pre`, where the op makes it.
    pub pre: Option<Value>,
}

/// The op `matmul`, begun by [`GraphBuilder::matmul`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Matmul<'g>(Op<'g>);

impl<'g> Matmul<'g> {
    /// The attribute `transpose_a`, which may be left out.
    pub fn transpose_a(self, transpose_a: i64) -> Self {
        Self(self.0.attr("transpose_a", transpose_a))
    }

    /// The attribute `transpose_b`, which may be left out.
    pub fn transpose_b(self, transpose_b: i64) -> Self {
        Self(self.0.attr("transpose_b", transpose_b))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `layernorm`, begun by [`GraphBuilder::layernorm`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Layernorm<'g>(Op<'g>);

impl<'g> Layernorm<'g> {
    /// The operand `gamma`, which may be left out.
    pub fn gamma(self, gamma: Value) -> Self {
        Self(self.0.input(1, gamma))
    }

    /// The operand `beta`, which may be left out.
    pub fn beta(self, beta: Value) -> Self {
        Self(self.0.input(2, beta))
    }

    /// The attribute `eps`, which may be left out.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.attr("eps", eps))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<LayernormOutputs> {
        let [y, mean, rstd] = self.0.build_all()?;
        Ok(LayernormOutputs { y: made(y)?, mean: made(mean)?, rstd: made(rstd)? })
    }
}

/// What the op `layernorm` makes; its text is at [`GraphBuilder::layernorm`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct LayernormOutputs {
    /// The output `y`.
    pub y: Value,
    /// The output `mean`.
    pub mean: Value,
    /// The output `rstd`.
    pub rstd: Value,
}

/// The op `rmsnorm`, begun by [`GraphBuilder::rmsnorm`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Rmsnorm<'g>(Op<'g>);

impl<'g> Rmsnorm<'g> {
    /// The operand `gamma`, which may be left out.
    pub fn gamma(self, gamma: Value) -> Self {
        Self(self.0.input(1, gamma))
    }

    /// The attribute `eps`, which may be left out.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.attr("eps", eps))
    }

    /// The attribute `offset`, which may be left out.
    pub fn offset(self, offset: f64) -> Self {
        Self(self.0.attr("offset", offset))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<RmsnormOutputs> {
        let [y, rstd] = self.0.build_all()?;
        Ok(RmsnormOutputs { y: made(y)?, rstd: made(rstd)? })
    }
}

/// What the op `rmsnorm` makes; its text is at [`GraphBuilder::rmsnorm`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct RmsnormOutputs {
    /// The output `y`.
    pub y: Value,
    /// The output `rstd`.
    pub rstd: Value,
}

/// The op `attention`, begun by [`GraphBuilder::attention`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Attention<'g>(Op<'g>);

impl<'g> Attention<'g> {
    /// The operand `k`, which may be left out.
    pub fn k(self, k: Value) -> Self {
        Self(self.0.input(1, k))
    }

    /// The operand `v`, which may be left out.
    pub fn v(self, v: Value) -> Self {
        Self(self.0.input(2, v))
    }

    /// The operand `sinks`, which may be left out.
    pub fn sinks(self, sinks: Value) -> Self {
        Self(self.0.input(3, sinks))
    }

    /// The operand `sequences`, which may be left out.
    pub fn sequences(self, sequences: Value) -> Self {
        Self(self.0.input(4, sequences))
    }

    /// The operand `lengths`, which may be left out.
    pub fn lengths(self, lengths: Value) -> Self {
        Self(self.0.input(5, lengths))
    }

    /// The operand `position`, which may be left out.
    pub fn position(self, position: Value) -> Self {
        Self(self.0.input(6, position))
    }

    /// The operand `distances`, which may be left out.
    pub fn distances(self, distances: Value) -> Self {
        Self(self.0.input(7, distances))
    }

    /// The attribute `kv_heads`, which may be left out.
    pub fn kv_heads(self, kv_heads: i64) -> Self {
        Self(self.0.attr("kv_heads", kv_heads))
    }

    /// The attribute `causal`, which may be left out.
    pub fn causal(self, causal: i64) -> Self {
        Self(self.0.attr("causal", causal))
    }

    /// The attribute `scale`, which may be left out.
    pub fn scale(self, scale: f64) -> Self {
        Self(self.0.attr("scale", scale))
    }

    /// The attribute `window`, which may be left out.
    pub fn window(self, window: i64) -> Self {
        Self(self.0.attr("window", window))
    }

    /// The attribute `softcap`, which may be left out.
    pub fn softcap(self, softcap: f64) -> Self {
        Self(self.0.attr("softcap", softcap))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<AttentionOutputs> {
        let [y, lse] = self.0.build_all()?;
        Ok(AttentionOutputs { y: made(y)?, lse: made(lse)? })
    }
}

/// What the op `attention` makes; its text is at [`GraphBuilder::attention`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct AttentionOutputs {
    /// The output `y`.
    pub y: Value,
    /// The output `lse`.
    pub lse: Value,
}

/// The op `relative_bias`, begun by [`GraphBuilder::relative_bias`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct RelativeBias<'g>(Op<'g>);

impl<'g> RelativeBias<'g> {
    /// The attribute `farthest`, which may be left out.
    pub fn farthest(self, farthest: i64) -> Self {
        Self(self.0.attr("farthest", farthest))
    }

    /// The attribute `bidirectional`, which may be left out.
    pub fn bidirectional(self, bidirectional: i64) -> Self {
        Self(self.0.attr("bidirectional", bidirectional))
    }

    /// Adds the op and returns `distances`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `rope`, begun by [`GraphBuilder::rope`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Rope<'g>(Op<'g>);

impl<'g> Rope<'g> {
    /// The operand `positions`, which may be left out.
    pub fn positions(self, positions: Value) -> Self {
        Self(self.0.input(1, positions))
    }

    /// The attribute `base`, which may be left out.
    pub fn base(self, base: f64) -> Self {
        Self(self.0.attr("base", base))
    }

    /// The attribute `inverse`, which may be left out.
    pub fn inverse(self, inverse: i64) -> Self {
        Self(self.0.attr("inverse", inverse))
    }

    /// The attribute `columns`, which may be left out.
    pub fn columns(self, columns: i64) -> Self {
        Self(self.0.attr("columns", columns))
    }

    /// The attribute `interleaved`, which may be left out.
    pub fn interleaved(self, interleaved: i64) -> Self {
        Self(self.0.attr("interleaved", interleaved))
    }

    /// The attribute `frequencies`, which may be left out.
    pub fn frequencies(self, frequencies: &[f64]) -> Self {
        Self(self.0.attr("frequencies", frequencies))
    }

    /// The attribute `factor`, which may be left out.
    pub fn factor(self, factor: f64) -> Self {
        Self(self.0.attr("factor", factor))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `route`, begun by [`GraphBuilder::route`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Route<'g>(Op<'g>);

impl<'g> Route<'g> {
    /// The attribute `normalise`, which may be left out.
    pub fn normalise(self, normalise: i64) -> Self {
        Self(self.0.attr("normalise", normalise))
    }

    /// Adds the op and returns `weights`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<RouteOutputs> {
        let [weights, experts] = self.0.build_all()?;
        Ok(RouteOutputs { weights: made(weights)?, experts: made(experts)? })
    }
}

/// What the op `route` makes; its text is at [`GraphBuilder::route`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct RouteOutputs {
    /// The output `weights`.
    pub weights: Value,
    /// The output `experts`.
    pub experts: Value,
}

/// The op `group_rows`, begun by [`GraphBuilder::group_rows`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct GroupRows<'g>(Op<'g>);

impl<'g> GroupRows<'g> {
    /// Adds the op and returns `order`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<GroupRowsOutputs> {
        let [order, places, starts] = self.0.build_all()?;
        Ok(GroupRowsOutputs { order: made(order)?, places: made(places)?, starts: made(starts)? })
    }
}

/// What the op `group_rows` makes; its text is at [`GraphBuilder::group_rows`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct GroupRowsOutputs {
    /// The output `order`.
    pub order: Value,
    /// The output `places`.
    pub places: Value,
    /// The output `starts`.
    pub starts: Value,
}

/// The op `count_choices`, begun by [`GraphBuilder::count_choices`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct CountChoices<'g>(Op<'g>);

impl<'g> CountChoices<'g> {
    /// Adds the op and returns `counts`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `gather_rows`, begun by [`GraphBuilder::gather_rows`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct GatherRows<'g>(Op<'g>);

impl<'g> GatherRows<'g> {
    /// The operand `weights`, which may be left out.
    pub fn weights(self, weights: Value) -> Self {
        Self(self.0.input(3, weights))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `combine_rows`, begun by [`GraphBuilder::combine_rows`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct CombineRows<'g>(Op<'g>);

impl<'g> CombineRows<'g> {
    /// The operand `weights`, which may be left out.
    pub fn weights(self, weights: Value) -> Self {
        Self(self.0.input(3, weights))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `grouped_linear`, begun by [`GraphBuilder::grouped_linear`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct GroupedLinear<'g>(Op<'g>);

impl<'g> GroupedLinear<'g> {
    /// The operand `b`, which may be left out.
    pub fn b(self, b: Value) -> Self {
        Self(self.0.input(3, b))
    }

    /// The attribute `transposed`, which may be left out.
    pub fn transposed(self, transposed: i64) -> Self {
        Self(self.0.attr("transposed", transposed))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `conv`, begun by [`GraphBuilder::conv`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Conv<'g>(Op<'g>);

impl<'g> Conv<'g> {
    /// The operand `b`, which may be left out.
    pub fn b(self, b: Value) -> Self {
        Self(self.0.input(2, b))
    }

    /// The attribute `stride`, which may be left out.
    pub fn stride(self, stride: &[i64]) -> Self {
        Self(self.0.attr("stride", stride))
    }

    /// The attribute `padding`, which may be left out.
    pub fn padding(self, padding: &[i64]) -> Self {
        Self(self.0.attr("padding", padding))
    }

    /// The attribute `dilation`, which may be left out.
    pub fn dilation(self, dilation: &[i64]) -> Self {
        Self(self.0.attr("dilation", dilation))
    }

    /// The attribute `groups`, which may be left out.
    pub fn groups(self, groups: i64) -> Self {
        Self(self.0.attr("groups", groups))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `conv_transpose`, begun by [`GraphBuilder::conv_transpose`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct ConvTranspose<'g>(Op<'g>);

impl<'g> ConvTranspose<'g> {
    /// The attribute `size`, which may be left out.
    pub fn size(self, size: &[i64]) -> Self {
        Self(self.0.attr("size", size))
    }

    /// The attribute `stride`, which may be left out.
    pub fn stride(self, stride: &[i64]) -> Self {
        Self(self.0.attr("stride", stride))
    }

    /// The attribute `padding`, which may be left out.
    pub fn padding(self, padding: &[i64]) -> Self {
        Self(self.0.attr("padding", padding))
    }

    /// The attribute `dilation`, which may be left out.
    pub fn dilation(self, dilation: &[i64]) -> Self {
        Self(self.0.attr("dilation", dilation))
    }

    /// The attribute `groups`, which may be left out.
    pub fn groups(self, groups: i64) -> Self {
        Self(self.0.attr("groups", groups))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `max_pool`, begun by [`GraphBuilder::max_pool`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct MaxPool<'g>(Op<'g>);

impl<'g> MaxPool<'g> {
    /// The attribute `kernel`, which may be left out.
    pub fn kernel(self, kernel: &[i64]) -> Self {
        Self(self.0.attr("kernel", kernel))
    }

    /// The attribute `stride`, which may be left out.
    pub fn stride(self, stride: &[i64]) -> Self {
        Self(self.0.attr("stride", stride))
    }

    /// The attribute `padding`, which may be left out.
    pub fn padding(self, padding: &[i64]) -> Self {
        Self(self.0.attr("padding", padding))
    }

    /// The attribute `size`, which may be left out.
    pub fn size(self, size: &[i64]) -> Self {
        Self(self.0.attr("size", size))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<MaxPoolOutputs> {
        let [y, places] = self.0.build_all()?;
        Ok(MaxPoolOutputs { y: made(y)?, places: made(places)? })
    }
}

/// What the op `max_pool` makes; its text is at [`GraphBuilder::max_pool`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct MaxPoolOutputs {
    /// The output `y`.
    pub y: Value,
    /// The output `places`.
    pub places: Value,
}

/// The op `average_pool`, begun by [`GraphBuilder::average_pool`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct AveragePool<'g>(Op<'g>);

impl<'g> AveragePool<'g> {
    /// The attribute `kernel`, which may be left out.
    pub fn kernel(self, kernel: &[i64]) -> Self {
        Self(self.0.attr("kernel", kernel))
    }

    /// The attribute `stride`, which may be left out.
    pub fn stride(self, stride: &[i64]) -> Self {
        Self(self.0.attr("stride", stride))
    }

    /// The attribute `padding`, which may be left out.
    pub fn padding(self, padding: &[i64]) -> Self {
        Self(self.0.attr("padding", padding))
    }

    /// The attribute `size`, which may be left out.
    pub fn size(self, size: &[i64]) -> Self {
        Self(self.0.attr("size", size))
    }

    /// The attribute `count_padding`, which may be left out.
    pub fn count_padding(self, count_padding: i64) -> Self {
        Self(self.0.attr("count_padding", count_padding))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `resize`, begun by [`GraphBuilder::resize`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Resize<'g>(Op<'g>);

impl<'g> Resize<'g> {
    /// The attribute `mode`, which may be left out.
    pub fn mode(self, mode: &str) -> Self {
        Self(self.0.attr("mode", mode))
    }

    /// The attribute `align_corners`, which may be left out.
    pub fn align_corners(self, align_corners: i64) -> Self {
        Self(self.0.attr("align_corners", align_corners))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `pad`, begun by [`GraphBuilder::pad`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Pad<'g>(Op<'g>);

impl<'g> Pad<'g> {
    /// The attribute `value`, which may be left out.
    pub fn value(self, value: f64) -> Self {
        Self(self.0.attr("value", value))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `patches`, begun by [`GraphBuilder::patches`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Patches<'g>(Op<'g>);

impl<'g> Patches<'g> {
    /// The attribute `stride`, which may be left out.
    pub fn stride(self, stride: &[i64]) -> Self {
        Self(self.0.attr("stride", stride))
    }

    /// The attribute `padding`, which may be left out.
    pub fn padding(self, padding: &[i64]) -> Self {
        Self(self.0.attr("padding", padding))
    }

    /// The attribute `dilation`, which may be left out.
    pub fn dilation(self, dilation: &[i64]) -> Self {
        Self(self.0.attr("dilation", dilation))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `batchnorm`, begun by [`GraphBuilder::batchnorm`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Batchnorm<'g>(Op<'g>);

impl<'g> Batchnorm<'g> {
    /// The operand `gamma`, which may be left out.
    pub fn gamma(self, gamma: Value) -> Self {
        Self(self.0.input(1, gamma))
    }

    /// The operand `beta`, which may be left out.
    pub fn beta(self, beta: Value) -> Self {
        Self(self.0.input(2, beta))
    }

    /// The attribute `eps`, which may be left out.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.attr("eps", eps))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<BatchnormOutputs> {
        let [y, mean, variance] = self.0.build_all()?;
        Ok(BatchnormOutputs { y: made(y)?, mean: made(mean)?, variance: made(variance)? })
    }
}

/// What the op `batchnorm` makes; its text is at [`GraphBuilder::batchnorm`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct BatchnormOutputs {
    /// The output `y`.
    pub y: Value,
    /// The output `mean`.
    pub mean: Value,
    /// The output `variance`.
    pub variance: Value,
}

/// The op `normalize`, begun by [`GraphBuilder::normalize`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Normalize<'g>(Op<'g>);

impl<'g> Normalize<'g> {
    /// The operand `gamma`, which may be left out.
    pub fn gamma(self, gamma: Value) -> Self {
        Self(self.0.input(3, gamma))
    }

    /// The operand `beta`, which may be left out.
    pub fn beta(self, beta: Value) -> Self {
        Self(self.0.input(4, beta))
    }

    /// The attribute `eps`, which may be left out.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.attr("eps", eps))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `groupnorm`, begun by [`GraphBuilder::groupnorm`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Groupnorm<'g>(Op<'g>);

impl<'g> Groupnorm<'g> {
    /// The operand `gamma`, which may be left out.
    pub fn gamma(self, gamma: Value) -> Self {
        Self(self.0.input(1, gamma))
    }

    /// The operand `beta`, which may be left out.
    pub fn beta(self, beta: Value) -> Self {
        Self(self.0.input(2, beta))
    }

    /// The attribute `eps`, which may be left out.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.attr("eps", eps))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<GroupnormOutputs> {
        let [y, mean, rstd] = self.0.build_all()?;
        Ok(GroupnormOutputs { y: made(y)?, mean: made(mean)?, rstd: made(rstd)? })
    }
}

/// What the op `groupnorm` makes; its text is at [`GraphBuilder::groupnorm`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct GroupnormOutputs {
    /// The output `y`.
    pub y: Value,
    /// The output `mean`.
    pub mean: Value,
    /// The output `rstd`.
    pub rstd: Value,
}

/// The op `l2_normalize`, begun by [`GraphBuilder::l2_normalize`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct L2Normalize<'g>(Op<'g>);

impl<'g> L2Normalize<'g> {
    /// The attribute `eps`, which may be left out.
    pub fn eps(self, eps: f64) -> Self {
        Self(self.0.attr("eps", eps))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<L2NormalizeOutputs> {
        let [y, norm] = self.0.build_all()?;
        Ok(L2NormalizeOutputs { y: made(y)?, norm: made(norm)? })
    }
}

/// What the op `l2_normalize` makes; its text is at [`GraphBuilder::l2_normalize`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct L2NormalizeOutputs {
    /// The output `y`.
    pub y: Value,
    /// The output `norm`.
    pub norm: Value,
}

/// The op `lstm`, begun by [`GraphBuilder::lstm`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Lstm<'g>(Op<'g>);

impl<'g> Lstm<'g> {
    /// The operand `h0`, which may be left out.
    pub fn h0(self, h0: Value) -> Self {
        Self(self.0.input(2, h0))
    }

    /// The operand `c0`, which may be left out.
    pub fn c0(self, c0: Value) -> Self {
        Self(self.0.input(3, c0))
    }

    /// The attribute `reverse`, which may be left out.
    pub fn reverse(self, reverse: i64) -> Self {
        Self(self.0.attr("reverse", reverse))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<LstmOutputs> {
        let [y, c, saved] = self.0.build_all()?;
        Ok(LstmOutputs { y: made(y)?, c: made(c)?, saved: made(saved)? })
    }
}

/// What the op `lstm` makes; its text is at [`GraphBuilder::lstm`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct LstmOutputs {
    /// The output `y`.
    pub y: Value,
    /// The output `c`.
    pub c: Value,
    /// The output `saved`.
    pub saved: Value,
}

/// The op `gru`, begun by [`GraphBuilder::gru`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Gru<'g>(Op<'g>);

impl<'g> Gru<'g> {
    /// The operand `b`, which may be left out.
    pub fn b(self, b: Value) -> Self {
        Self(self.0.input(2, b))
    }

    /// The operand `h0`, which may be left out.
    pub fn h0(self, h0: Value) -> Self {
        Self(self.0.input(3, h0))
    }

    /// The attribute `reverse`, which may be left out.
    pub fn reverse(self, reverse: i64) -> Self {
        Self(self.0.attr("reverse", reverse))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<GruOutputs> {
        let [y, saved] = self.0.build_all()?;
        Ok(GruOutputs { y: made(y)?, saved: made(saved)? })
    }
}

/// What the op `gru` makes; its text is at [`GraphBuilder::gru`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct GruOutputs {
    /// The output `y`.
    pub y: Value,
    /// The output `saved`.
    pub saved: Value,
}

/// The op `gelu`, begun by [`GraphBuilder::gelu`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Gelu<'g>(Op<'g>);

impl<'g> Gelu<'g> {
    /// The attribute `approximate`, which may be left out.
    pub fn approximate(self, approximate: &str) -> Self {
        Self(self.0.attr("approximate", approximate))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `relu`, begun by [`GraphBuilder::relu`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Relu<'g>(Op<'g>);

impl<'g> Relu<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `silu`, begun by [`GraphBuilder::silu`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Silu<'g>(Op<'g>);

impl<'g> Silu<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `sigmoid`, begun by [`GraphBuilder::sigmoid`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Sigmoid<'g>(Op<'g>);

impl<'g> Sigmoid<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `tanh`, begun by [`GraphBuilder::tanh`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Tanh<'g>(Op<'g>);

impl<'g> Tanh<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `softplus`, begun by [`GraphBuilder::softplus`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Softplus<'g>(Op<'g>);

impl<'g> Softplus<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `exp`, begun by [`GraphBuilder::exp`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Exp<'g>(Op<'g>);

impl<'g> Exp<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `log`, begun by [`GraphBuilder::log`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Log<'g>(Op<'g>);

impl<'g> Log<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `sqrt`, begun by [`GraphBuilder::sqrt`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Sqrt<'g>(Op<'g>);

impl<'g> Sqrt<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `abs`, begun by [`GraphBuilder::abs`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Abs<'g>(Op<'g>);

impl<'g> Abs<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `clamp`, begun by [`GraphBuilder::clamp`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Clamp<'g>(Op<'g>);

impl<'g> Clamp<'g> {
    /// The attribute `min`, which may be left out.
    pub fn min(self, min: f64) -> Self {
        Self(self.0.attr("min", min))
    }

    /// The attribute `max`, which may be left out.
    pub fn max(self, max: f64) -> Self {
        Self(self.0.attr("max", max))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `pow`, begun by [`GraphBuilder::pow`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Pow<'g>(Op<'g>);

impl<'g> Pow<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `softcap`, begun by [`GraphBuilder::softcap`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Softcap<'g>(Op<'g>);

impl<'g> Softcap<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `swiglu`, begun by [`GraphBuilder::swiglu`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Swiglu<'g>(Op<'g>);

impl<'g> Swiglu<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `glu`, begun by [`GraphBuilder::glu`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Glu<'g>(Op<'g>);

impl<'g> Glu<'g> {
    /// The attribute `activation`, which may be left out.
    pub fn activation(self, activation: &str) -> Self {
        Self(self.0.attr("activation", activation))
    }

    /// The attribute `limit`, which may be left out.
    pub fn limit(self, limit: f64) -> Self {
        Self(self.0.attr("limit", limit))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `add`, begun by [`GraphBuilder::add`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Add<'g>(Op<'g>);

impl<'g> Add<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `mul`, begun by [`GraphBuilder::mul`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Mul<'g>(Op<'g>);

impl<'g> Mul<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `sub`, begun by [`GraphBuilder::sub`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Sub<'g>(Op<'g>);

impl<'g> Sub<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `div`, begun by [`GraphBuilder::div`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Div<'g>(Op<'g>);

impl<'g> Div<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `minimum`, begun by [`GraphBuilder::minimum`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Minimum<'g>(Op<'g>);

impl<'g> Minimum<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `maximum`, begun by [`GraphBuilder::maximum`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Maximum<'g>(Op<'g>);

impl<'g> Maximum<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `less`, begun by [`GraphBuilder::less`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Less<'g>(Op<'g>);

impl<'g> Less<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `less_equal`, begun by [`GraphBuilder::less_equal`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct LessEqual<'g>(Op<'g>);

impl<'g> LessEqual<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `greater`, begun by [`GraphBuilder::greater`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Greater<'g>(Op<'g>);

impl<'g> Greater<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `greater_equal`, begun by [`GraphBuilder::greater_equal`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct GreaterEqual<'g>(Op<'g>);

impl<'g> GreaterEqual<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `equal`, begun by [`GraphBuilder::equal`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Equal<'g>(Op<'g>);

impl<'g> Equal<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `not_equal`, begun by [`GraphBuilder::not_equal`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct NotEqual<'g>(Op<'g>);

impl<'g> NotEqual<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `where`, begun by [`GraphBuilder::where_`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Where<'g>(Op<'g>);

impl<'g> Where<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `scale`, begun by [`GraphBuilder::scale`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Scale<'g>(Op<'g>);

impl<'g> Scale<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `dropout`, begun by [`GraphBuilder::dropout`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Dropout<'g>(Op<'g>);

impl<'g> Dropout<'g> {
    /// The attribute `rng`, which may be left out.
    pub fn rng(self, rng: i64) -> Self {
        Self(self.0.attr("rng", rng))
    }

    /// The attribute `first`, which may be left out.
    pub fn first(self, first: i64) -> Self {
        Self(self.0.attr("first", first))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `softmax`, begun by [`GraphBuilder::softmax`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Softmax<'g>(Op<'g>);

impl<'g> Softmax<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `linear_cross_entropy`, begun by [`GraphBuilder::linear_cross_entropy`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct LinearCrossEntropy<'g>(Op<'g>);

impl<'g> LinearCrossEntropy<'g> {
    /// The operand `weights`, which may be left out.
    pub fn weights(self, weights: Value) -> Self {
        Self(self.0.input(3, weights))
    }

    /// The operand `class_weights`, which may be left out.
    pub fn class_weights(self, class_weights: Value) -> Self {
        Self(self.0.input(4, class_weights))
    }

    /// The attribute `ignore_index`, which may be left out.
    pub fn ignore_index(self, ignore_index: i64) -> Self {
        Self(self.0.attr("ignore_index", ignore_index))
    }

    /// The attribute `chunk`, which may be left out.
    pub fn chunk(self, chunk: i64) -> Self {
        Self(self.0.attr("chunk", chunk))
    }

    /// The attribute `accuracy`, which may be left out.
    pub fn accuracy(self, accuracy: i64) -> Self {
        Self(self.0.attr("accuracy", accuracy))
    }

    /// The attribute `smoothing`, which may be left out.
    pub fn smoothing(self, smoothing: f64) -> Self {
        Self(self.0.attr("smoothing", smoothing))
    }

    /// The attribute `scale`, which may be left out.
    pub fn scale(self, scale: f64) -> Self {
        Self(self.0.attr("scale", scale))
    }

    /// The attribute `softcap`, which may be left out.
    pub fn softcap(self, softcap: f64) -> Self {
        Self(self.0.attr("softcap", softcap))
    }

    /// Adds the op and returns `loss`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<LinearCrossEntropyOutputs> {
        let [loss, weight, hits, count] = self.0.build_all()?;
        Ok(LinearCrossEntropyOutputs { loss: made(loss)?, weight: made(weight)?, hits, count })
    }
}

/// What the op `linear_cross_entropy` makes; its text is at [`GraphBuilder::linear_cross_entropy`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct LinearCrossEntropyOutputs {
    /// The output `loss`.
    pub loss: Value,
    /// The output `weight`.
    pub weight: Value,
    /// The output `hits`, where the op makes it.
    pub hits: Option<Value>,
    /// The output `count`, where the op makes it.
    pub count: Option<Value>,
}

/// The op `cross_entropy`, begun by [`GraphBuilder::cross_entropy`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct CrossEntropy<'g>(Op<'g>);

impl<'g> CrossEntropy<'g> {
    /// The operand `weights`, which may be left out.
    pub fn weights(self, weights: Value) -> Self {
        Self(self.0.input(2, weights))
    }

    /// The operand `class_weights`, which may be left out.
    pub fn class_weights(self, class_weights: Value) -> Self {
        Self(self.0.input(3, class_weights))
    }

    /// The attribute `ignore_index`, which may be left out.
    pub fn ignore_index(self, ignore_index: i64) -> Self {
        Self(self.0.attr("ignore_index", ignore_index))
    }

    /// The attribute `smoothing`, which may be left out.
    pub fn smoothing(self, smoothing: f64) -> Self {
        Self(self.0.attr("smoothing", smoothing))
    }

    /// Adds the op and returns `loss`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<CrossEntropyOutputs> {
        let [loss, weight] = self.0.build_all()?;
        Ok(CrossEntropyOutputs { loss: made(loss)?, weight: made(weight)? })
    }
}

/// What the op `cross_entropy` makes; its text is at [`GraphBuilder::cross_entropy`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropyOutputs {
    /// The output `loss`.
    pub loss: Value,
    /// The output `weight`.
    pub weight: Value,
}

/// The op `accuracy`, begun by [`GraphBuilder::accuracy`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Accuracy<'g>(Op<'g>);

impl<'g> Accuracy<'g> {
    /// The operand `weights`, which may be left out.
    pub fn weights(self, weights: Value) -> Self {
        Self(self.0.input(2, weights))
    }

    /// The attribute `ignore_index`, which may be left out.
    pub fn ignore_index(self, ignore_index: i64) -> Self {
        Self(self.0.attr("ignore_index", ignore_index))
    }

    /// The attribute `top`, which may be left out.
    pub fn top(self, top: i64) -> Self {
        Self(self.0.attr("top", top))
    }

    /// Adds the op and returns `hits`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<AccuracyOutputs> {
        let [hits, count] = self.0.build_all()?;
        Ok(AccuracyOutputs { hits: made(hits)?, count: made(count)? })
    }
}

/// What the op `accuracy` makes; its text is at [`GraphBuilder::accuracy`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct AccuracyOutputs {
    /// The output `hits`.
    pub hits: Value,
    /// The output `count`.
    pub count: Value,
}

/// The op `mse`, begun by [`GraphBuilder::mse`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Mse<'g>(Op<'g>);

impl<'g> Mse<'g> {
    /// The operand `weights`, which may be left out.
    pub fn weights(self, weights: Value) -> Self {
        Self(self.0.input(2, weights))
    }

    /// Adds the op and returns `loss`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<MseOutputs> {
        let [loss, weight] = self.0.build_all()?;
        Ok(MseOutputs { loss: made(loss)?, weight: made(weight)? })
    }
}

/// What the op `mse` makes; its text is at [`GraphBuilder::mse`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct MseOutputs {
    /// The output `loss`.
    pub loss: Value,
    /// The output `weight`.
    pub weight: Value,
}

/// The op `pair_loss`, begun by [`GraphBuilder::pair_loss`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct PairLoss<'g>(Op<'g>);

impl<'g> PairLoss<'g> {
    /// The operand `bias`, which may be left out.
    pub fn bias(self, bias: Value) -> Self {
        Self(self.0.input(3, bias))
    }

    /// The attribute `margin`, which may be left out.
    pub fn margin(self, margin: f64) -> Self {
        Self(self.0.attr("margin", margin))
    }

    /// Adds the op and returns `loss`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }

    /// Adds the op and returns all that it makes.
    pub fn build_all(self) -> Result<PairLossOutputs> {
        let [loss, weight] = self.0.build_all()?;
        Ok(PairLossOutputs { loss: made(loss)?, weight: made(weight)? })
    }
}

/// What the op `pair_loss` makes; its text is at [`GraphBuilder::pair_loss`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct PairLossOutputs {
    /// The output `loss`.
    pub loss: Value,
    /// The output `weight`.
    pub weight: Value,
}

/// The op `reshape`, begun by [`GraphBuilder::reshape`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Reshape<'g>(Op<'g>);

impl<'g> Reshape<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `detach`, begun by [`GraphBuilder::detach`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Detach<'g>(Op<'g>);

impl<'g> Detach<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `transpose`, begun by [`GraphBuilder::transpose`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Transpose<'g>(Op<'g>);

impl<'g> Transpose<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `slice`, begun by [`GraphBuilder::slice`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Slice<'g>(Op<'g>);

impl<'g> Slice<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `concat`, begun by [`GraphBuilder::concat`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Concat<'g>(Op<'g>);

impl<'g> Concat<'g> {
    /// The operand `x1`, which may be left out.
    pub fn x1(self, x1: Value) -> Self {
        Self(self.0.input(1, x1))
    }

    /// The operand `x2`, which may be left out.
    pub fn x2(self, x2: Value) -> Self {
        Self(self.0.input(2, x2))
    }

    /// The operand `x3`, which may be left out.
    pub fn x3(self, x3: Value) -> Self {
        Self(self.0.input(3, x3))
    }

    /// The operand `x4`, which may be left out.
    pub fn x4(self, x4: Value) -> Self {
        Self(self.0.input(4, x4))
    }

    /// The operand `x5`, which may be left out.
    pub fn x5(self, x5: Value) -> Self {
        Self(self.0.input(5, x5))
    }

    /// The operand `x6`, which may be left out.
    pub fn x6(self, x6: Value) -> Self {
        Self(self.0.input(6, x6))
    }

    /// The operand `x7`, which may be left out.
    pub fn x7(self, x7: Value) -> Self {
        Self(self.0.input(7, x7))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `reduce_sum`, begun by [`GraphBuilder::reduce_sum`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct ReduceSum<'g>(Op<'g>);

impl<'g> ReduceSum<'g> {
    /// The attribute `axes`, which may be left out.
    pub fn axes(self, axes: &[i64]) -> Self {
        Self(self.0.attr("axes", axes))
    }

    /// The attribute `keep`, which may be left out.
    pub fn keep(self, keep: i64) -> Self {
        Self(self.0.attr("keep", keep))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `reduce_mean`, begun by [`GraphBuilder::reduce_mean`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct ReduceMean<'g>(Op<'g>);

impl<'g> ReduceMean<'g> {
    /// The attribute `axes`, which may be left out.
    pub fn axes(self, axes: &[i64]) -> Self {
        Self(self.0.attr("axes", axes))
    }

    /// The attribute `keep`, which may be left out.
    pub fn keep(self, keep: i64) -> Self {
        Self(self.0.attr("keep", keep))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `cast`, begun by [`GraphBuilder::cast`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Cast<'g>(Op<'g>);

impl<'g> Cast<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `running_mean`, begun by [`GraphBuilder::running_mean`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct RunningMean<'g>(Op<'g>);

impl<'g> RunningMean<'g> {
    /// The attribute `momentum`, which may be left out.
    pub fn momentum(self, momentum: f64) -> Self {
        Self(self.0.attr("momentum", momentum))
    }

    /// Adds the op and returns `sums`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `append`, begun by [`GraphBuilder::append`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Append<'g>(Op<'g>);

impl<'g> Append<'g> {
    /// The operand `count`, which may be left out.
    pub fn count(self, count: Value) -> Self {
        Self(self.0.input(3, count))
    }

    /// The attribute `ring`, which may be left out.
    pub fn ring(self, ring: i64) -> Self {
        Self(self.0.attr("ring", ring))
    }

    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `effective`, begun by [`GraphBuilder::effective`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct Effective<'g>(Op<'g>);

impl<'g> Effective<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The op `row_numbers`, begun by [`GraphBuilder::row_numbers`] and added by `build`.
#[must_use = "an op is added by build"]
#[derive(Debug)]
pub struct RowNumbers<'g>(Op<'g>);

impl<'g> RowNumbers<'g> {
    /// Adds the op and returns `y`.
    pub fn build(self) -> Result<Value> {
        self.0.build()
    }
}

/// The names of the ops that have a method.
#[cfg(test)]
pub(crate) const NAMES: &[&str] = &[
    "embedding",
    "linear",
    "matmul",
    "layernorm",
    "rmsnorm",
    "attention",
    "relative_bias",
    "rope",
    "route",
    "group_rows",
    "count_choices",
    "gather_rows",
    "combine_rows",
    "grouped_linear",
    "conv",
    "conv_transpose",
    "max_pool",
    "average_pool",
    "resize",
    "pad",
    "patches",
    "batchnorm",
    "normalize",
    "groupnorm",
    "l2_normalize",
    "lstm",
    "gru",
    "gelu",
    "relu",
    "silu",
    "sigmoid",
    "tanh",
    "softplus",
    "exp",
    "log",
    "sqrt",
    "abs",
    "clamp",
    "pow",
    "softcap",
    "swiglu",
    "glu",
    "add",
    "mul",
    "sub",
    "div",
    "minimum",
    "maximum",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "where",
    "scale",
    "dropout",
    "softmax",
    "linear_cross_entropy",
    "cross_entropy",
    "accuracy",
    "mse",
    "pair_loss",
    "reshape",
    "detach",
    "transpose",
    "slice",
    "concat",
    "reduce_sum",
    "reduce_mean",
    "cast",
    "running_mean",
    "append",
    "effective",
    "row_numbers",
];
