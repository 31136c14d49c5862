//! Text, token by token. The model counts the tokens that its cache holds: the next is the one after that which was there most
//! often.
mod support;

use cairn::{DType, Ends, Graph, Instance, Parameter, PlanOptions, PlanSet, Sampling, Status};
use support::*;

const V: usize = 5;

fn model(instance: &Instance, length: i64) -> Graph {
    let v = V as i64;
    let mut builder = instance.graph().unwrap();
    let tokens = builder.input("tokens", &[2, length], DType::I32).unwrap();
    let position = builder.input("position", &[2], DType::I32).unwrap();
    let count = builder.input("count", &[2], DType::I32).unwrap();
    let table = builder.parameter("table", &[v, v], Parameter::zeros()).unwrap();
    let x = builder.embedding(table, tokens).build().unwrap();
    let cache = builder.cache("cache", &[2, 4, v], DType::F32, 0.0).unwrap();
    let all = builder.op("append", &[cache, x, position, count]).build().unwrap();
    let counts = builder.op("reduce_sum", &[all]).attr("axes", &[1i64][..]).build().unwrap();
    let after = builder.parameter("after", &[v, v], Parameter::zeros()).unwrap();
    let logits = builder.linear(counts, after).build().unwrap();
    builder.name(logits, "logits").unwrap();
    builder.freeze(Ends::outputs(&[logits])).unwrap()
}

#[test]
fn tokens_are_drawn_from_logits() {
    let logits = [0.5, 2.0, 1.0];
    assert_eq!(Sampling::greedy().draw(&logits, &[0]).unwrap(), 1);
    assert_eq!(Sampling { repetition_penalty: 4.0, ..Sampling::greedy() }.draw(&logits, &[1]).unwrap(), 2);
    fails(Status::InvalidArgument, &["token 3", "0 to 2"], Sampling::greedy().draw(&logits, &[3]));
    fails(Status::NonFinite, &["not finite"], Sampling::greedy().draw(&[f32::NAN], &[]));
}

#[test]
fn samples_go_on_each_by_itself() {
    let (instance, device) = cpu();
    let (one, many) = (model(&instance, 1), model(&instance, 3));
    let plans = PlanSet::new(&[("one", &one), ("many", &many)], &device, &PlanOptions::new()).unwrap();
    let mut store = plans.sessions(&device).unwrap();
    let square = |at: fn(usize, usize) -> bool| -> Vec<f32> {
        (0..V * V).map(|i| if at(i / V, i % V) { 1.0 } else { 0.0 }).collect()
    };
    let mut session = store.session("one").unwrap();
    session.initialise(1).unwrap();
    session.write("table", &square(|i, j| i == j)).unwrap();
    session.write("after", &square(|i, j| i == (j + 1) % V)).unwrap();

    fails(Status::NotFound, &["two", "one, many"], store.generator(&["two"], 0));
    fails(Status::InvalidArgument, &["shortest"], store.generator(&["many"], 0));
    let mut generator = store.generator(&["one", "many"], 0).unwrap();
    fails(Status::WrongState, &["no token"], generator.logits(1));
    generator.begin(1, &[2, 2], &Sampling::greedy()).unwrap();
    assert_eq!(generator.next_tokens().unwrap(), [None, Some(3)]);
    generator.begin(0, &[4], &Sampling::greedy()).unwrap();
    assert_eq!(generator.next_tokens().unwrap(), [Some(0), Some(3)]);
    assert_eq!(generator.logits(1).unwrap()[3], 2.0);
    generator.end(1).unwrap();
    assert_eq!(generator.next_tokens().unwrap()[1], None);
    fails(
        Status::InvalidArgument,
        &["top_p"],
        generator.begin(0, &[1], &Sampling { top_p: 0.0, ..Sampling::default() }),
    );
    fails(Status::InvalidArgument, &["holds 4"], generator.begin(0, &[1; 5], &Sampling::default()));
    let info = generator.info().unwrap();
    assert_eq!((info.samples, info.vocabulary, info.capacity, info.cache_bytes), (2, 5, Some(4), 160));
    assert_eq!((info.prefill_tokens, info.decode_tokens), (3, 2));
}
