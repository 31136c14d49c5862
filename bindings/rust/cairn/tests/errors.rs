//! A failure of every status, and what it says.
mod support;
use cairn::{
    Checkpoint, CustomOp, DType, Ends, Error, Graph, Instance, InstanceOptions, Limited, Parameter, PlanOptions,
    Status, StepperOptions, Tier, ValueKind,
};
use support::*;

/// A session of a graph with one custom op that fails with what it is told.
fn failing(instance: &Instance, status: Status) -> cairn::Session {
    let device = instance.device("cpu").unwrap();
    let mut graph = instance.graph().unwrap();
    graph.custom_op(CustomOp::new("refuse", 1, 1, move |_| Err(Error::new(status, "it was told to")))).unwrap();
    let x = graph.input("x", &[4], DType::F32).unwrap();
    let y = graph.op("refuse", &[x]).build().unwrap();
    graph.freeze(Ends::outputs(&[y])).unwrap().plan(&device).unwrap().session(&device).unwrap()
}

#[test]
fn invalid_argument_names_op_and_shapes() {
    let (instance, _) = cpu();
    let mut graph = instance.graph().unwrap();
    let x = graph.input("x", &[8, 4], DType::F32).unwrap();
    let w = graph.parameter("w", &[3, 5], Parameter::zeros()).unwrap();
    fails(Status::InvalidArgument, &["linear", "8", "5"], graph.linear(x, w).build());
    fails(Status::InvalidArgument, &["NUL at byte 1"], graph.input("a\0b", &[1], DType::F32));
    let rows = graph.input("rows", &[1, 2, 4], DType::F32).unwrap();
    assert!(graph.rope(rows, 1).frequencies(&[1.0, 0.5]).build().is_ok());
    fails(Status::InvalidArgument, &["rope", "2 numbers"], graph.rope(rows, 1).frequencies(&[1.0]).build());
    // A value of another graph would silently be another value.
    let other = instance.graph().unwrap().input("x", &[8, 4], DType::F32).unwrap();
    fails(Status::InvalidArgument, &["another graph"], graph.gelu(other).build());
    fails(Status::InvalidArgument, &["another graph"], graph.freeze(Ends::loss(other)));
}

/// Bits of another type would silently be other numbers: `[0, 1]` is of i32.
#[test]
fn numbers_of_another_type_are_refused() {
    let (instance, device) = cpu();
    let mut graph = instance.graph().unwrap();
    let x = graph.input("x", &[2, 2], DType::F32).unwrap();
    let w = graph.parameter("w", &[1, 2], Parameter::zeros()).unwrap();
    let tokens = graph.input("tokens", &[2], DType::I32).unwrap();
    let table = graph.parameter("table", &[3, 1], Parameter::zeros()).unwrap();
    let (a, b) = (graph.linear(x, w).build().unwrap(), graph.embedding(table, tokens).build().unwrap());
    let loss = graph.mse(a, b).build().unwrap();
    let plan = graph.freeze(Ends::loss(loss)).unwrap();
    let plan = plan.plan_with(&device, &PlanOptions::new().no_optimizer()).unwrap();
    let mut session = plan.session(&device).unwrap();
    fails(Status::InvalidArgument, &["'x' is F32", "i32"], session.write("x", &[0, 1, 1, 0]));
    fails(Status::InvalidArgument, &["'x' is F32", "f64"], session.read_vec::<f64>("x", 2));
    fails(Status::InvalidArgument, &["'tokens' is I32", "f32"], session.write("tokens", &[0f32, 1.0]));
    fails(Status::InvalidArgument, &["'w/gradient' is F32", "i32"], session.read_vec::<i32>("w/gradient", 2));
    fails(Status::InvalidArgument, &["'w' is F32", "i64"], session.read_vec::<i64>("w", 1));
    fails(Status::NotFound, &["nowhere"], session.write("nowhere", &[0, 1]));
    fails(Status::NotFound, &["nowhere"], session.value("nowhere"));
    let tokens = session.value("tokens").unwrap();
    assert_eq!((tokens.dims, tokens.dtype, tokens.kind, tokens.bytes), (vec![2], DType::I32, ValueKind::Input, 8));
    let gradient = session.value("w/gradient").unwrap();
    assert_eq!((gradient.dims, gradient.dtype, gradient.bytes), (vec![1, 2], DType::F32, 8));
    session.write("x", &1f32.to_ne_bytes().repeat(4)).unwrap(); // bytes are of any type
    assert_eq!(session.read_vec::<f32>("x", 4).unwrap(), [1.0; 4]);
    // Before memory is taken for them, and where the count of bytes wraps around to the right one.
    for count in [0, 3, 5, 1 << 45, (usize::MAX >> 2) + 5, usize::MAX] {
        fails(Status::InvalidArgument, &["'x' has 16 bytes", &count.to_string()], session.read_vec::<f32>("x", count));
    }
    fails(Status::NotFound, &["nowhere"], session.read_vec::<f32>("nowhere", usize::MAX));
}

#[test]
fn wrong_state_names_the_state() {
    let (instance, device) = cpu();
    let plan = plan(&instance, &device);
    let mut session = plan.session(&device).unwrap();
    fails(Status::WrongState, &["stepper"], session.run());
    let mut stepper = session.stepper(&StepperOptions::default()).unwrap();
    fails(Status::WrongState, &[], stepper.apply());
}

#[test]
fn out_of_memory_says_how_much() {
    let memory = Limited::new(10_000);
    let instance = Instance::with(InstanceOptions::new().allocator(memory.clone())).unwrap();
    let device = instance.device("cpu").unwrap();
    let plan = plan(&instance, &device);
    let wanted = plan.summary().unwrap().peak_bytes[0];
    let error = fails(Status::OutOfMemory, &[], plan.session(&device));
    let fault = error.fault().expect("the numbers");
    assert!(fault.requested_bytes >= wanted && fault.tier == Tier::Device, "{fault:?}");
    assert_eq!(memory.in_use_bytes(), 0);

    let memory = Limited::new(64 << 20);
    let instance = Instance::with(InstanceOptions::new().allocator(memory.clone())).unwrap();
    let device = instance.device("cpu").unwrap();
    let session = support::plan(&instance, &device).session(&device).unwrap();
    drop((instance, device)); // the session keeps the allocator
    assert!(memory.in_use_bytes() >= wanted);
    drop(session);
    assert_eq!(memory.in_use_bytes(), 0);
    assert!(memory.peak_bytes() >= wanted);
}

#[test]
fn over_budget_names_the_smallest() {
    let (instance, device) = cpu();
    let graph = training_graph(&instance);
    let error = fails(Status::OverBudget, &[], graph.plan_with(&device, &PlanOptions::new().budget_bytes(1)));
    let smallest = error.fault().unwrap().smallest_budget_bytes;
    let plan = graph.plan_with(&device, &PlanOptions::new().budget_bytes(smallest)).unwrap();
    assert!(plan.summary().unwrap().peak_bytes[0] <= smallest);
    fails(Status::OverBudget, &[], graph.plan_with(&device, &PlanOptions::new().budget_bytes(smallest - 64)));
}

#[test]
fn unsupported_not_found_corrupt_and_io() {
    let (instance, device) = cpu();
    let mut graph = instance.graph().unwrap();
    graph.custom_op(CustomOp::new("mine", 1, 1, |_| Ok(()))).unwrap();
    let w = graph.parameter("w", &[4], Parameter::constant(1.0)).unwrap();
    let y = graph.op("mine", &[w]).build().unwrap();
    let loss = graph.op("reduce_sum", &[y]).build().unwrap();
    let folder = Folder::new();
    let graph = graph.freeze(Ends::loss(loss)).unwrap();
    fails(Status::Unsupported, &["mine"], graph.plan_with(&device, &PlanOptions::new()));
    // A file has the op's name alone.
    graph.save(folder.join("graph.cairn")).unwrap();
    let loaded = Graph::load(&instance, folder.join("graph.cairn")).unwrap();
    fails(Status::NotFound, &["mine"], loaded.plan_with(&device, &PlanOptions::new()));

    fails(Status::NotFound, &["abacus", "cpu"], instance.device("abacus"));
    fails(Status::NotFound, &["nothing"], instance.graph().unwrap().op("nothing", &[]).build());
    fails(Status::NotFound, &[], Checkpoint::open(&instance, folder.join("none")));

    let path = folder.join("garbage");
    std::fs::write(&path, "no graph at all, but long enough to be looked at").unwrap();
    fails(Status::CorruptFile, &["garbage"], Graph::load(&instance, &path));

    let mut session = plan(&instance, &device).session(&device).unwrap();
    let unwritable = folder.join("nowhere").join("weights");
    fails(Status::Io, &["nowhere"], session.export(unwritable, &[]));
}

#[test]
fn cancelled_once() {
    let (instance, device) = cpu();
    let mut session = predicting_graph(&instance, ROWS).unwrap().plan(&device).unwrap().session(&device).unwrap();
    fails(Status::WrongState, &["parameters have no values", "'x'"], session.run());
    session.initialise(1).unwrap();
    session.write("x", &batch(0, ROWS).0).unwrap();
    let monitor = session.monitor();
    monitor.cancel();
    fails(Status::Cancelled, &[], session.run());
    session.run().unwrap();
    drop(session);
    monitor.cancel(); // nothing to cancel any more
    assert!(monitor.usage(Tier::Device).is_none());
}

/// A gradient that is not finite is found when parameters behind it were updated.
#[test]
fn non_finite_where_parameters_were_updated() {
    let (instance, device) = cpu();
    let mut graph = instance.graph().unwrap();
    let spoil = CustomOp::new("spoil", 1, 1, |run| {
        let x = run.inputs[0].slice::<f32>()?;
        run.outputs[0].slice_mut::<f32>()?.copy_from_slice(x);
        Ok(())
    });
    let spoil = spoil.backward(|run| {
        run.input_gradients[0].slice_mut::<f32>()?.fill(f32::NAN);
        Ok(())
    });
    graph.custom_op(spoil).unwrap();
    let x = graph.input("x", &[ROWS, IN], DType::F32).unwrap();
    let first = graph.parameter("first", &[IN, IN], Parameter::normal(0.3)).unwrap();
    let last = graph.parameter("last", &[IN, IN], Parameter::normal(0.3)).unwrap();
    let h = graph.linear(x, first).build().unwrap();
    let h = graph.op("spoil", &[h]).build().unwrap();
    let y = graph.linear(h, last).build().unwrap();
    let loss = graph.mse(y, x).build().unwrap();
    let graph = graph.freeze(Ends::loss(loss)).unwrap();
    let plan = graph.plan_with(&device, &PlanOptions::new().fuse_update()).unwrap();
    let mut stepper = stepper(&plan, &device, &StepperOptions::new(0.01).clip_norm(0.0));
    stepper.session().write("x", &batch(0, ROWS).0).unwrap();
    fails(Status::NonFinite, &[], stepper.micro());
}

fn failing_run(status: Status) -> cairn::Result<()> {
    let mut session = failing(&Instance::new().unwrap(), status);
    session.write("x", &[0f32; 4]).unwrap();
    session.run()
}

/// What the host's own code fails with comes through, be it what only a GPU or a bug of cairn's would say otherwise.
#[test]
fn every_status_comes_through_a_custom_op() {
    for code in 1..=12 {
        let status = Status::from(code);
        let error = fails(status, &["custom op 'refuse'", "it was told to"], failing_run(status));
        assert_eq!(error.status().code(), code);
        assert!(error.to_string().starts_with(status.name()));
    }
    fails(Status::InvalidArgument, &["4711", "it was told to"], failing_run(Status::Unknown(4711)));
    fails(Status::InvalidArgument, &["it was told to"], failing_run(Status::Unknown(0)));
}
