//! What plans store parameters as by their names.
mod support;

use cairn::{DType, Ends, Parameter, PlanOptions, Status};
use support::*;

#[test]
fn sessions_read_the_numbers_that_are_stored() {
    let (instance, device) = cpu();
    let mut builder = instance.graph().unwrap();
    let x = builder.input("x", &[2, 64], DType::F32).unwrap();
    let target = builder.input("t", &[2, 1], DType::F32).unwrap();
    let frozen = builder.parameter("h.0.weight", &[64, 64], Parameter::normal(1.0).frozen()).unwrap();
    let head = builder.parameter("head", &[1, 64], Parameter::normal(1.0)).unwrap();
    let h = builder.linear(x, frozen).build().unwrap();
    let y = builder.linear(h, head).build().unwrap();
    let loss = builder.mse(y, target).build().unwrap();
    let graph = builder.freeze(Ends::loss(loss)).unwrap();

    let plan = graph.plan_with(&device, &PlanOptions::new().format("h.*", "int8")).unwrap();
    let mut session = plan.session(&device).unwrap();
    session.initialise(3).unwrap();
    let stored = |i: usize| if i % 64 == 0 { 127.0 } else { (i % 64) as f32 - 31.0 }; // the scale is 1
    let numbers: Vec<f32> = (0..64 * 64).map(|i| if i % 64 == 0 { 127.0 } else { stored(i) + 0.25 }).collect();
    session.write("h.0.weight", &numbers).unwrap();
    let read = session.read_vec::<f32>("h.0.weight", numbers.len()).unwrap();
    assert!((0..numbers.len()).all(|i| read[i] == stored(i)));

    for (pattern, words) in [("head", "f32, bf16 or split"), ("k.*", "no parameter")] {
        let options = PlanOptions::new().format(pattern, "int8");
        fails(Status::InvalidArgument, &[pattern, words], graph.plan_with(&device, &options));
    }
}
