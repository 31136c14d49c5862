//! An adapter for a model file, trained in this process within a budget, on texts of this program.
//!
//!     cargo run --example finetune FOLDER MODEL [BUDGET in MiB]
use cairn::{Instance, Model, ModelOptions, Result, Sampling};
use std::path::Path;

/// Questions and the answers that the model is to give.
const ROWS: [(&str, &str); 3] = [
    ("what marks the way?", "a cairn"),
    ("what is a cairn?", "a pile of stones"),
    ("who goes back?", "whoever finds the stones"),
];
const STEPS: u64 = 60;

fn run(folder: &Path, path: &str, budget: u64) -> Result<()> {
    let instance = Instance::new()?;
    // The same words that `cairn train MODEL` takes.
    let options = ModelOptions::new().setting("lora", 8).setting("lora_targets", "*_proj").setting("seq", 64);
    let options = options.setting("batch", 2).setting("rate", 1e-2).budget_bytes(budget).seed(7);
    let mut model = Model::open(&instance, path, &options)?;
    let info = model.info()?;
    println!(
        "{} of {} parameters learn; planned: {} bytes of {budget}",
        info.trainable_parameters, info.parameters, info.planned_bytes[0]
    );
    for (prompt, answer) in ROWS {
        model.add(prompt, answer)?;
    }
    let first = model.train(1)?.loss;
    let last = model.train(STEPS - 1)?;
    println!("loss {first:.3}, then {:.3} at step {}", last.loss, last.step);
    assert!(last.loss < first);
    println!("{} -> {}", ROWS[0].0, model.generate(ROWS[0].0, 16, &Sampling::greedy())?);
    model.save(folder.join("example-finetune-rust"))?;
    model.export(folder.join("example-adapter-rust"), "adapter")
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() < 3 {
        eprintln!("usage: finetune FOLDER MODEL [BUDGET in MiB]");
        std::process::exit(2);
    }
    let mib = arguments.get(3).and_then(|text| text.parse().ok()).unwrap_or(64u64);
    if let Err(error) = run(Path::new(&arguments[1]), &arguments[2], mib << 20) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
