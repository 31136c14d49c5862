//! A complete training run: a small transformer learns to count, inside 70 % of the memory that keeping everything takes. It
//! is saved half way, goes on in a new session as if nothing had happened, and then counts on its own.
//!
//!     cargo run --example train [FOLDER for the checkpoints]
use cairn::{
    Checkpoint, DType, Device, Ends, GraphBuilder, Instance, Parameter, Plan, PlanOptions, Policy, Result, StepReport,
    Stepper, StepperOptions, Tier, Value,
};
use std::io::Write;
use std::path::Path;

const BATCH: i64 = 16;
const LENGTH: i64 = 32;
const WIDTH: i64 = 32;
const HEADS: i64 = 4;
const BLOCKS: usize = 2;
const VOCABULARY: i64 = 32;
const STEPS: u64 = 60;

// ---- the model

fn weight(graph: &mut GraphBuilder, name: &str, rows: i64, columns: i64) -> Result<Value> {
    graph.parameter(name, &[rows, columns], Parameter::normal(0.08))
}

fn norm(graph: &mut GraphBuilder, name: &str, x: Value) -> Result<Value> {
    let gain = graph.parameter(name, &[WIDTH], Parameter::constant(1.0).no_decay())?;
    graph.rmsnorm(x).gamma(gain).build()
}

fn linear(graph: &mut GraphBuilder, name: &str, x: Value, rows: i64, columns: i64) -> Result<Value> {
    let w = weight(graph, name, rows, columns)?;
    graph.linear(x, w).build()
}

/// One block is one region: the planner decides what of it to keep and what to compute again.
fn block(graph: &mut GraphBuilder, name: &str, x: Value) -> Result<Value> {
    graph.region(name, Policy::PlannerDecides, |graph| {
        let h = norm(graph, &format!("{name}.norm1"), x)?;
        let h = linear(graph, &format!("{name}.qkv"), h, 3 * WIDTH, WIDTH)?;
        let h = graph.attention(h, HEADS).build()?;
        let h = linear(graph, &format!("{name}.out"), h, WIDTH, WIDTH)?;
        let x = graph.add(x, h).build()?;
        let h = norm(graph, &format!("{name}.norm2"), x)?;
        let up = weight(graph, &format!("{name}.up"), 4 * WIDTH, WIDTH)?;
        let h = graph.linear(h, up).activation("gelu_tanh").build()?;
        let h = linear(graph, &format!("{name}.down"), h, WIDTH, 4 * WIDTH)?;
        graph.add(x, h).build()
    })
}

/// Tokens to the last block's output, and the table of embeddings, which is the last layer, too: tied.
fn trunk(graph: &mut GraphBuilder, tokens: Value) -> Result<(Value, Value)> {
    let table = weight(graph, "embedding", VOCABULARY, WIDTH)?;
    let x = graph.embedding(table, tokens).build()?;
    let position = weight(graph, "position", LENGTH, WIDTH)?;
    let mut x = graph.add(x, position).build()?;
    for number in 0..BLOCKS {
        x = block(graph, &format!("h{number}"), x)?;
    }
    Ok((norm(graph, "norm", x)?, table))
}

fn training_graph(instance: &Instance) -> Result<cairn::Graph> {
    let mut graph = instance.graph()?;
    let tokens = graph.input("tokens", &[BATCH, LENGTH], DType::I32)?;
    let targets = graph.input("targets", &[BATCH, LENGTH], DType::I32)?;
    let (x, table) = trunk(&mut graph, tokens)?;
    // Logits are never all in memory.
    let loss = graph.linear_cross_entropy(x, table, targets).build()?;
    graph.freeze(Ends::loss(loss))
}

fn generating_graph(instance: &Instance) -> Result<cairn::Graph> {
    let mut graph = instance.graph()?;
    let tokens = graph.input("tokens", &[1, LENGTH], DType::I32)?;
    let (x, table) = trunk(&mut graph, tokens)?;
    let logits = graph.linear(x, table).build()?;
    graph.name(logits, "logits")?;
    graph.freeze(Ends::outputs(&[logits]))
}

// ---- the task: rows that count up by 1, 2 or 3 from anywhere

fn make_batch(step: u64, tokens: &mut Vec<i32>, targets: &mut Vec<i32>) {
    let mut state = 1u32.wrapping_add(2654435761u32.wrapping_mul(step as u32));
    tokens.clear();
    targets.clear();
    for _ in 0..BATCH {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        let (start, stride) = ((state >> 16) as i64 % VOCABULARY, 1 + (state >> 8) as i64 % 3);
        for i in 0..LENGTH {
            tokens.push(((start + i * stride) % VOCABULARY) as i32);
            targets.push(((start + (i + 1) * stride) % VOCABULARY) as i32);
        }
    }
}

fn train(
    stepper: &mut Stepper,
    steps: std::ops::Range<u64>,
    out: &mut dyn Write,
) -> std::result::Result<StepReport, Box<dyn std::error::Error>> {
    let (mut tokens, mut targets) = (Vec::new(), Vec::new());
    let mut report = stepper.report()?;
    for step in steps {
        make_batch(step, &mut tokens, &mut targets);
        stepper.session().write("tokens", &tokens)?;
        stepper.session().write("targets", &targets)?;
        report = stepper.micro()?;
        if step % 10 == 9 {
            let StepReport { step, loss, gradient_norm, rate, .. } = report;
            writeln!(out, "step {step:2}: loss {loss:.4}, gradient norm {gradient_norm:.3}, rate {rate:.4}")?;
        }
    }
    Ok(report)
}

/// Continues a text of tokens, always with the likeliest one.
fn generate(instance: &Instance, device: &Device, checkpoint: &Checkpoint, start: &[i32]) -> Result<Vec<i32>> {
    let mut session = generating_graph(instance)?.plan(device)?.session(device)?;
    session.load(checkpoint)?;
    let mut tokens = start.to_vec();
    let mut logits = vec![0f32; (LENGTH * VOCABULARY) as usize];
    while tokens.len() < LENGTH as usize {
        let mut window = tokens.clone();
        window.resize(LENGTH as usize, 0); // what comes later is not looked at
        session.write("tokens", &window)?;
        session.run()?;
        session.read("logits", &mut logits)?;
        let row = &logits[(tokens.len() - 1) * VOCABULARY as usize..][..VOCABULARY as usize];
        let best = (0..row.len()).fold(0, |best, token| if row[token] > row[best] { token } else { best });
        tokens.push(best as i32);
    }
    Ok(tokens)
}

// ---- the run

fn start(plan: &Plan, device: &Device) -> Result<Stepper> {
    plan.session(device)?.stepper(&StepperOptions::new(1e-2).warmup_steps(5).cosine(STEPS, 0.0))
}

/// Trains below a folder and writes what happens; false: something is not as promised.
pub fn run(folder: &Path, out: &mut dyn Write) -> std::result::Result<bool, Box<dyn std::error::Error>> {
    let (half, whole) = (folder.join("example-train-rust"), folder.join("example-train-rust-end"));
    let instance = Instance::new()?;
    let device = instance.device("cpu")?;
    let plan = training_graph(&instance)?.plan_with(&device, &PlanOptions::new().budget_share(0.7))?;
    let summary = plan.summary()?;
    writeln!(
        out,
        "planned: {:.2} of {:.2} MB, keeping {:.2} MB of activations and recomputing {:.2} MB",
        summary.peak_bytes[0] as f64 / 1e6,
        summary.budget_bytes as f64 / 1e6,
        summary.keep_bytes as f64 / 1e6,
        summary.recompute_bytes as f64 / 1e6
    )?;

    let mut stepper = start(&plan, &device)?;
    stepper.session().initialise(42)?;
    train(&mut stepper, 0..STEPS / 2, out)?;
    stepper.save(&half, &[("task", "counting")], &[])?;
    let uninterrupted = train(&mut stepper, STEPS / 2..STEPS, out)?;
    let digest = stepper.session().digest()?;
    let as_planned = stepper.session().usage(Tier::Device)?.peak_bytes == summary.peak_bytes[0];
    drop(stepper);

    writeln!(out, "again, from the checkpoint")?;
    let checkpoint = Checkpoint::open(&instance, &half)?;
    let mut stepper = start(&plan, &device)?;
    stepper.restore(&checkpoint)?;
    train(&mut stepper, STEPS / 2..STEPS, out)?;
    let same = stepper.session().digest()? == digest;
    let (words, peak) = (if same { "the same" } else { "NOT the same" }, if as_planned { "as" } else { "NOT as" });
    writeln!(out, "parameters {digest}, {words} to the bit; peak {peak} planned")?;

    stepper.save(&whole, &[("task", "counting")], &[])?;
    let counted = generate(&instance, &device, &Checkpoint::open(&instance, &whole)?, &[1, 3, 5, 7])?;
    writeln!(out, "counts: {counted:?}")?;
    let by_two = (1..VOCABULARY as i32).step_by(2).cycle().take(LENGTH as usize);
    let counts = counted.iter().zip(by_two).filter(|(got, wanted)| *got == wanted).count() > counted.len() * 3 / 4;
    Ok(same && as_planned && counts && uninterrupted.loss < 1.0)
}

#[allow(dead_code)] // a test takes `run` alone
fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    if run(Path::new(&folder), &mut std::io::stdout())? {
        return Ok(());
    }
    Err("the run is not as it should be".into())
}
