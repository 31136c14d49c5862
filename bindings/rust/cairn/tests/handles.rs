//! Objects made and dropped for ever: the process does not grow. Some 40,000; a hundred times as many under CAIRN_TEST=long,
//! a million of each of the cheap ones.
mod support;
use cairn::{Checkpoint, Dataset, Instance, Status, StepperOptions, Tokenizer};
use support::*;

/// What the C library's heap may move by.
const SLACK: usize = 4 << 20;

fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// `one` makes and drops `made` objects; so often that there are as many as `objects` (a hundredth without
/// CAIRN_TEST=long).
fn for_ever(name: &str, objects: usize, made: usize, mut one: impl FnMut()) {
    let long = std::env::var_os("CAIRN_TEST").map_or(false, |kind| kind == "long");
    let count = objects / made / if long { 1 } else { 100 };
    (0..count / 10 + 1).for_each(|_| one());
    let before = resident_bytes();
    (0..count).for_each(|_| one());
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < SLACK, "{name}: {grown} bytes more after {} objects", count * made);
    println!("{name}: {} objects, {grown} bytes", count * made);
}

/// One test, so that nothing else of the process moves its memory.
#[test]
fn memory_stays_flat() {
    let (instance, device) = cpu();
    for_ever("instances", 1_000_000, 1, || drop(Instance::new().unwrap()));
    for_ever("graphs", 1_000_000, 2, || {
        drop(instance.graph().unwrap());
        training_graph(&instance);
    });
    for_ever("errors and clones", 1_000_000, 4, || {
        fails(Status::NotFound, &["cpu"], instance.device("nothing"));
        let tokenizer = Tokenizer::bytes(&instance).unwrap();
        let text = tokenizer.clone().decode(&tokenizer.encode("words").unwrap()).unwrap();
        assert_eq!(text.clone().as_bytes(), b"words");
    });
    for_ever("data sets", 1_000_000, 2, || drop(Dataset::random(&instance, 1, 16, 4).unwrap().clone()));
    for_ever("devices", 100_000, 1, || drop(cpu()));
    let graph = training_graph(&instance);
    let plan = graph.plan(&device).unwrap();
    for_ever("plans", 100_000, 1, || drop(graph.plan(&device).unwrap()));
    for_ever("sessions, steppers, monitors", 100_000, 3, || {
        let session = plan.session(&device).unwrap();
        let monitor = session.monitor();
        drop(session.stepper(&StepperOptions::default()).unwrap());
        assert!(monitor.usage(cairn::Tier::Device).is_none());
    });
    let folder = Folder::new();
    stepper(&plan, &device, &StepperOptions::default()).save(folder.join("saved"), &[], &[]).unwrap();
    for_ever("checkpoints and their graphs", 100_000, 3, || {
        let checkpoint = Checkpoint::open(&instance, folder.join("saved")).unwrap();
        drop(checkpoint.clone().graph().unwrap());
    });
}
