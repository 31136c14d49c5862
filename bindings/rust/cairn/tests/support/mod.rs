//! What the tests share: a small perceptron, folders that go away, and a look at a failure.
#![allow(dead_code)] // each test takes a part
use cairn::{
    DType, Device, DeviceOptions, Ends, Error, Graph, GraphBuilder, Instance, Parameter, Plan, PlanOptions, Policy,
    Result, Status, Stepper, StepperOptions, Value,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub const ROWS: i64 = 8;
pub const IN: i64 = 4;
pub const WIDTH: i64 = 16;

/// An instance and its CPU with one thread.
pub fn cpu() -> (Instance, Device) {
    let instance = Instance::new().unwrap();
    let device = instance.device_with("cpu", &DeviceOptions::new().threads(1)).unwrap();
    (instance, device)
}

/// x to y, in two layers that are regions.
pub fn layers(graph: &mut GraphBuilder, mut x: Value) -> Result<Value> {
    for (name, outputs, inputs) in [("first", WIDTH, IN), ("second", WIDTH, WIDTH), ("last", 1, WIDTH)] {
        let w = graph.parameter(&format!("{name}.weight"), &[outputs, inputs], Parameter::normal(0.3))?;
        let b = graph.parameter(&format!("{name}.bias"), &[outputs], Parameter::zeros().no_decay())?;
        x = graph.region(name, Policy::PlannerDecides, |graph| {
            let op = graph.linear(x, w).b(b);
            if name == "last" { op } else { op.activation("gelu_tanh") }.build()
        })?;
    }
    Ok(x)
}

pub fn training_graph_of(instance: &Instance, rows: i64) -> Result<Graph> {
    let mut graph = instance.graph()?;
    let x = graph.input("x", &[rows, IN], DType::F32)?;
    let target = graph.input("target", &[rows, 1], DType::F32)?;
    let y = layers(&mut graph, x)?;
    let loss = graph.mse(y, target).build()?;
    graph.freeze(Ends::loss(loss))
}

pub fn training_graph(instance: &Instance) -> Graph {
    training_graph_of(instance, ROWS).unwrap()
}

/// A graph that predicts with the same parameters.
pub fn predicting_graph(instance: &Instance, rows: i64) -> Result<Graph> {
    let mut graph = instance.graph()?;
    let x = graph.input("x", &[rows, IN], DType::F32)?;
    let y = layers(&mut graph, x)?;
    graph.name(y, "y")?;
    graph.freeze(Ends::outputs(&[y]))
}

pub fn plan(instance: &Instance, device: &Device) -> Plan {
    training_graph(instance).plan_with(device, &PlanOptions::new()).unwrap()
}

pub fn stepper(plan: &Plan, device: &Device, options: &StepperOptions) -> Stepper {
    let mut session = plan.session(device).unwrap();
    session.initialise(1).unwrap();
    session.stepper(options).unwrap()
}

/// Inputs and targets of a micro-batch: the sum of the first two numbers.
pub fn batch(index: u64, rows: i64) -> (Vec<f32>, Vec<f32>) {
    let mut state = 12345u32.wrapping_add(7919u32.wrapping_mul(index as u32));
    let mut next = || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    let x: Vec<f32> = (0..rows * IN).map(|_| next()).collect();
    let target = x.chunks(IN as usize).map(|row| row[0] + row[1]).collect();
    (x, target)
}

/// One micro-batch; its loss.
pub fn step(stepper: &mut Stepper, index: u64) -> Result<f64> {
    let (x, target) = batch(index, ROWS);
    stepper.session().write("x", &x)?;
    stepper.session().write("target", &target)?;
    Ok(stepper.micro()?.loss)
}

/// The error of a result, which has this status and these words.
#[track_caller]
pub fn fails<T>(status: Status, words: &[&str], result: Result<T>) -> Error {
    let error = result.err().expect("it fails");
    assert_eq!(error.status(), status, "{error}");
    for word in words {
        assert!(error.message().contains(word), "no '{word}' in: {error}");
    }
    error
}

/// A folder that goes away with it.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("cairn-rust-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
