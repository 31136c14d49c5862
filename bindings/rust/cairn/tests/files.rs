//! Graphs, weights, tokens and batches in files.
mod support;
use cairn::{DType, Dataset, ExportOptions, Graph, Status, StepperOptions, TensorName, Tokenizer, ValueKind};
use support::*;

#[test]
fn graphs_go_through_files() {
    let (instance, device) = cpu();
    let folder = Folder::new();
    let graph = training_graph(&instance);
    graph.save(folder.join("graph.cairn")).unwrap();
    let loaded = Graph::load(&instance, folder.join("graph.cairn")).unwrap();
    let names = |graph: &Graph| graph.values().map(|value| value.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&graph), names(&loaded));
    assert_eq!(loaded.inputs().map(|input| input.name.to_string()).collect::<Vec<_>>(), ["x", "target"]);
    let weight = loaded.find("first.weight").unwrap();
    let info = loaded.info(weight).unwrap();
    assert_eq!((info.dims.as_slice(), info.dtype, info.kind), (&[WIDTH, IN][..], DType::F32, ValueKind::Parameter));
    assert_eq!((info.bytes, info.value), ((WIDTH * IN * 4) as u64, weight));
    assert!(loaded.find("nothing").is_none() && loaded.find("a\0b").is_none());
    fails(Status::InvalidArgument, &["another graph"], graph.info(weight));
    loaded.plan(&device).unwrap();
    let told = instance.inspect(folder.join("graph.cairn")).unwrap().to_string();
    assert!(told.contains("first.weight"), "{told}");
}

#[test]
fn weights_go_through_safetensors() {
    let (instance, device) = cpu();
    let folder = Folder::new();
    let path = folder.join("weights.safetensors");
    let mut session = plan(&instance, &device).session(&device).unwrap();
    session.initialise(5).unwrap();
    let digest = session.digest().unwrap();
    let names = [TensorName::new("first.weight", "model.0.w").transposed(), TensorName::new("last.bias", "bias")];
    session.export(&path, &names).unwrap();
    assert!(std::fs::read(&path).unwrap().windows(9).any(|at| at == b"model.0.w"));
    session.initialise(6).unwrap();
    assert_ne!(session.digest().unwrap(), digest);
    session.import(&path, &names).unwrap();
    assert_eq!(session.digest().unwrap(), digest);
    fails(Status::InvalidArgument, &["first.weight"], session.import(&path, &[]));
    fails(Status::NotFound, &[], session.import(folder.join("none"), &[]));
    let model = folder.join("model");
    let options = ExportOptions { directory: true, shard_bytes: 64, files: vec![path.clone()], ..Default::default() };
    session.export_as(&model, &names, &options).unwrap();
    assert!(model.join("model.safetensors.index.json").exists() && model.join("weights.safetensors").exists());
    session.initialise(6).unwrap();
    session.import(&model, &names).unwrap();
    assert_eq!(session.digest().unwrap(), digest);
    fails(Status::InvalidArgument, &["holds other files"], session.export_as(&model, &names, &options));
    let odd = ExportOptions { dtype: Some("int8".into()), ..Default::default() };
    fails(Status::InvalidArgument, &["'int8'"], session.export_as(&path, &names, &odd));
}

#[test]
fn a_checkpoints_parameters_go_into_any_session() {
    let (instance, device) = cpu();
    let folder = Folder::new();
    let mut trained = stepper(&plan(&instance, &device), &device, &StepperOptions::new(0.05));
    (0..10).try_for_each(|index| step(&mut trained, index).map(|_| ())).unwrap();
    trained.save(folder.join("saved"), &[], &[]).unwrap();
    let checkpoint = cairn::Checkpoint::open(&instance, folder.join("saved")).unwrap();
    let mut session = predicting_graph(&instance, 3).unwrap().plan(&device).unwrap().session(&device).unwrap();
    session.load(&checkpoint).unwrap();
    assert_eq!(session.digest().unwrap(), trained.session().digest().unwrap());
}

#[test]
fn text_becomes_tokens_becomes_batches() {
    let (instance, _) = cpu();
    let folder = Folder::new();
    let text = "Once upon a time a pile of stones marked the way back. ".repeat(40);
    std::fs::write(folder.join("text"), &text).unwrap();
    Tokenizer::train(&instance, folder.join("text"), 320, folder.join("model")).unwrap();
    let tokenizer = Tokenizer::bpe(&instance, folder.join("model")).unwrap();
    assert_eq!(tokenizer.vocabulary(), 320);
    let tokens = tokenizer.encode(&text).unwrap();
    assert!(tokens.len() < text.len());
    assert_eq!(tokenizer.decode(&tokens).unwrap().as_str().unwrap(), text);
    tokenizer.write(folder.join("text"), folder.join("tokens")).unwrap();

    let dataset = Dataset::open(&instance, folder.join("tokens"), 8).unwrap();
    let info = dataset.info().unwrap();
    assert_eq!((info.tokens, info.length, info.vocabulary), (tokens.len() as u64, 8, 320));
    let (mut inputs, mut targets) = ([0; 32], [0; 32]);
    assert_eq!(dataset.batch(1, 0, &mut inputs, &mut targets).unwrap(), 4);
    assert_eq!(inputs[1..8], targets[..7]);
    let words = ["31 inputs and 32 targets", "rows of 8"];
    fails(Status::InvalidArgument, &words, dataset.batch(1, 0, &mut inputs[..31], &mut targets));

    let split = Tokenizer::bytes(&instance).unwrap().decode(&[0xc3]).unwrap(); // half a letter
    assert_eq!(split.as_bytes(), [0xc3]);
    fails(Status::InvalidArgument, &["UTF-8"], split.as_str().map(str::len));
}
