// Package cairn trains neural networks inside a memory budget. It is the C library libcairn with Go's manners: errors are
// values, a context cancels a step, objects are closed once or left to the collector, custom ops are Go functions.
//
// The way of a program is NewInstance, OpenDevice, NewGraph, a plan of the graph under a budget (NewPlan), a session that
// holds the plan's memory (NewSession), and a stepper that trains it (NewStepper).
//
// # Errors
//
// What fails returns an *Error with a Status, a message that names what was given, what is wanted and the remedy, and, where
// memory was asked for, a MemoryFault. A Status is an error itself: errors.Is(err, cairn.OverBudget). Calls that build a graph
// return values and keep the first error instead, with the line it came from; Graph.Err and Graph.Freeze return it.
//
// # Closing
//
// Every object has Close. It may be called any number of times, from any goroutine and in any order: a session keeps what it
// needs of its plan, its device and its graph. A call with a closed object is an error that is ErrClosed and WrongState. A
// Close during a call does not wait; the memory goes with the end of that call. Objects that nobody refers to are closed by
// the collector, which does not see how much memory of C they hold: close sessions, plans and checkpoints by hand.
//
// # Goroutines
//
// All methods may be called from any goroutine. Calls that must not overlap wait for each other: those on one instance,
// device, graph, costs or plan, and those on a session, its steppers and all sessions of its store, which count as one object.
// Session.Cancel and Session.Usage never wait, and neither do methods of Dataset, Tokenizer and Checkpoint. Functions that the
// library calls (custom ops, an allocator, a log) must not call this package: they would wait for their own caller.
//
// # Memory of Go and C
//
// Slices are read and written where they lie, during the call alone; names are copied. The tensors of a custom op are slices
// over the library's memory, valid until the function returns.
package cairn
