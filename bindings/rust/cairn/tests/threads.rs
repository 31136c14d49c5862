//! What may be done from where, and the host's hooks.
mod support;
use cairn::{
    Checkpoint, Costs, Dataset, Device, Ends, Graph, GraphBuilder, Instance, InstanceOptions, Level, Monitor,
    Parameter, Plan, Session, Status, Stepper, StepperOptions, Store, Text, Tier, Tokenizer,
};
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use support::*;

/// Everything may change its thread; what is shared is what `cairn.h` allows. What is not `Sync` does not compile where it
/// is shared: the doctests of `Instance`, `Device`, `Graph` and `Plan` show it.
#[test]
fn send_and_sync() {
    fn send<T: Send>() {}
    fn sync<T: Send + Sync>() {}
    macro_rules! are {
        ($check:ident: $($object:ty),*) => {$( $check::<$object>(); )*};
    }
    are!(send: Instance, Device, Graph, Plan);
    are!(sync: GraphBuilder, Costs, Session, Store, Stepper, Checkpoint, Text, Monitor, Tokenizer, Dataset);
    are!(sync: cairn::Error, cairn::CustomOp, cairn::Value);
}

/// Sessions of one device and plan run side by side, each on its thread, to the same bits.
#[test]
fn sessions_run_side_by_side() {
    let (instance, device) = cpu();
    let plan = plan(&instance, &device);
    let steppers: Vec<_> = (0..3).map(|_| stepper(&plan, &device, &StepperOptions::new(0.01))).collect();
    let run = |mut stepper: Stepper| {
        std::thread::spawn(move || {
            (0..30).try_for_each(|index| step(&mut stepper, index).map(|_| ())).unwrap();
            stepper.session().digest().unwrap()
        })
    };
    let threads: Vec<_> = steppers.into_iter().map(run).collect();
    drop((plan, device, instance)); // sessions keep what they need
    let digests: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(digests.iter().all(|digest| *digest == digests[0]));
}

#[test]
fn a_run_is_watched_and_cancelled_from_another_thread() {
    let (instance, device) = cpu();
    let mut stepper = stepper(&plan(&instance, &device), &device, &StepperOptions::new(0.01));
    let monitor = stepper.session().monitor();
    let watch = std::thread::spawn(move || {
        let peak = monitor.usage(Tier::Device).unwrap().unwrap().peak_bytes;
        monitor.cancel();
        peak
    });
    let error = (0..).find_map(|index| step(&mut stepper, index).err()).unwrap();
    assert_eq!(error.status(), Status::Cancelled);
    watch.join().unwrap();
    step(&mut stepper, 0).unwrap();
}

/// Handles that are not `Sync` are shared by a lock of the host's.
#[test]
fn a_mutex_shares_what_is_not_sync() {
    let (instance, device) = cpu();
    let shared = Arc::new(Mutex::new((plan(&instance, &device), device)));
    let make = || {
        let shared = shared.clone();
        std::thread::spawn(move || {
            let both = shared.lock().unwrap();
            stepper(&both.0, &both.1, &StepperOptions::new(0.01))
        })
    };
    for thread in [make(), make()] {
        step(&mut thread.join().unwrap(), 0).unwrap();
    }
}

/// A parameter that nothing uses is told to the log; a log that panics, or that calls cairn, harms nothing.
#[test]
fn the_log_is_told() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let told = lines.clone();
    let log = move |level: Level, line: &str| {
        told.lock().unwrap().push((level, line.to_string()));
        let calls = cairn::Instance::new().map(|_| ());
        assert_eq!(calls.unwrap_err().status(), Status::WrongState);
        panic!("a log of no use");
    };
    let instance = Instance::with(InstanceOptions::new().log(log)).unwrap();
    let mut graph = instance.graph().unwrap();
    let x = graph.input("x", &[4, 4], cairn::DType::F32).unwrap();
    let w = graph.parameter("w", &[4, 4], Parameter::zeros()).unwrap();
    graph.parameter("idle", &[4], Parameter::zeros()).unwrap();
    let y = graph.linear(x, w).build().unwrap();
    let loss = graph.mse(y, x).build().unwrap();
    graph.freeze(Ends::loss(loss)).unwrap();
    let lines = lines.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    assert!(lines.iter().any(|(_, line)| line.contains("idle")), "{lines:?}");
}

/// Gives nothing, each time in another way.
struct Broken(Mutex<u32>);
unsafe impl cairn::Allocator for Broken {
    fn allocate(&self, _: Layout) -> Option<NonNull<u8>> {
        let mut calls = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *calls += 1;
        if *calls == 1 {
            panic!("no memory here");
        }
        None
    }
    unsafe fn release(&self, _: NonNull<u8>, _: Layout) {}
}

#[test]
fn an_allocator_that_panics_has_no_memory() {
    let instance = Instance::with(InstanceOptions::new().allocator(Broken(Mutex::new(0)))).unwrap();
    let device = instance.device("cpu").unwrap();
    let plan = plan(&instance, &device);
    for _ in 0..2 {
        fails(Status::OutOfMemory, &[], plan.session(&device));
    }
}
