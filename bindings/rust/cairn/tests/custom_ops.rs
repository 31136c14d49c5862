//! Ops of the host's, as closures: what they compute, what they fail with, and that a panic stays in its place.
mod support;
use cairn::{CustomOp, DType, Ends, Instance, Parameter, PlanOptions, Session, Status, TensorType};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use support::*;

/// y = x^2 by float32, with a workspace that both directions use.
fn square() -> CustomOp {
    CustomOp::new("square", 1, 1, |run| {
        let x = run.inputs[0].slice::<f32>()?;
        assert!(run.workspace.len() >= 4 * x.len());
        run.workspace[4 * x.len() - 1] = 1;
        for (y, x) in run.outputs[0].slice_mut::<f32>()?.iter_mut().zip(x) {
            *y = x * x;
        }
        Ok(())
    })
    .workspace(|types| Ok(4 * types[0].dims.iter().product::<i64>() as usize))
    .backward(|run| {
        let x = run.inputs[0].slice::<f32>()?;
        let dy = run.output_gradients[0].slice::<f32>()?;
        assert_eq!(run.outputs[0].dims(), run.inputs[0].dims());
        if run.input_gradients[0].is_wanted() {
            for ((dx, x), dy) in run.input_gradients[0].slice_mut::<f32>()?.iter_mut().zip(x).zip(dy) {
                *dx = 2.0 * x * dy;
            }
        }
        Ok(())
    })
    .recomputable()
}

/// A session that makes gradients of the mean square between op(w) and x.
fn gradients_of(instance: &Instance, op: CustomOp, name: &str) -> cairn::Result<Session> {
    let device = instance.device("cpu")?;
    let mut graph = instance.graph()?;
    graph.custom_op(op)?;
    let w = graph.parameter("w", &[4, 4], Parameter::constant(0.5))?;
    let x = graph.input("x", &[4, 4], DType::F32)?;
    let y = graph.op(name, &[w]).build()?;
    let loss = graph.mse(y, x).build()?;
    let graph = graph.freeze(Ends::loss(loss))?;
    let mut session = graph.plan_with(&device, &PlanOptions::new().no_optimizer())?.session(&device)?;
    session.initialise(1)?;
    session.write("x", &[1f32; 16])?;
    Ok(session)
}

#[test]
fn the_hosts_gradient_is_trained_through() {
    let mut session = gradients_of(&Instance::new().unwrap(), square(), "square").unwrap();
    session.run().unwrap();
    // d/dw (w^2 - x)^2 = 2 (w^2 - x) 2 w, at w = 0.5, x = 1
    for gradient in session.read_vec::<f32>("w/gradient", 16).unwrap() {
        assert_eq!(gradient, 2.0 * (0.25 - 1.0) * 2.0 * 0.5);
    }
}

#[test]
fn shapes_are_the_closures() {
    let instance = Instance::new().unwrap();
    let mut graph = instance.graph().unwrap();
    let ends = CustomOp::new("ends", 2, 2, |run| {
        let (a, b) = (run.inputs[0].slice::<i32>()?, run.inputs[1].slice::<u8>()?);
        run.outputs[0].slice_mut::<i32>()?[0] = a[0] + a[a.len() - 1];
        run.outputs[1].slice_mut::<f64>()?.copy_from_slice(&[f64::from(b[0]), f64::from(b[b.len() - 1])]);
        Ok(())
    })
    .shape(|types| {
        assert_eq!(types, [TensorType::new(&[3], DType::I32), TensorType::new(&[2, 2], DType::U8)]);
        Ok(vec![TensorType::new(&[1], DType::I32), TensorType::new(&[2], DType::F64)])
    });
    graph.custom_op(ends).unwrap();
    let a = graph.input("a", &[3], DType::I32).unwrap();
    let b = graph.input("b", &[2, 2], DType::U8).unwrap();
    let made = graph.op("ends", &[a, b]).build_all::<2>().unwrap();
    let (first, second) = (made[0].unwrap(), made[1].unwrap());
    graph.name(first, "first").unwrap();
    graph.name(second, "second").unwrap();
    assert_eq!(graph.info(second).unwrap().dtype, DType::F64);
    let graph = graph.freeze(Ends::outputs(&[first, second])).unwrap();
    let device = instance.device("cpu").unwrap();
    let mut session = graph.plan(&device).unwrap().session(&device).unwrap();
    session.write("a", &[1i32, 2, 40]).unwrap();
    session.write("b", &[7u8, 0, 0, 9]).unwrap();
    session.run().unwrap();
    assert_eq!(session.read_vec::<i32>("first", 1).unwrap(), [41]);
    assert_eq!(session.read_vec::<f64>("second", 2).unwrap(), [7.0, 9.0]);
}

#[test]
fn a_failing_closure_fails_its_call_with_its_words() {
    let instance = Instance::new().unwrap();
    let broken = CustomOp::new("broken", 1, 1, |_| Ok(()))
        .shape(|_| Err(cairn::Error::new(Status::Unsupported, "no such shape")));
    fails(
        Status::Unsupported,
        &["broken", "shape callback", "no such shape"],
        gradients_of(&instance, broken, "broken"),
    );

    let short = CustomOp::new("short", 1, 1, |_| Ok(())).shape(|_| Ok(vec![]));
    fails(Status::InvalidArgument, &["short", "1 types"], gradients_of(&instance, short, "short"));

    let greedy = square().workspace(|_| Err("who knows".into()));
    fails(Status::InvalidArgument, &["custom op 'square'", "who knows"], gradients_of(&instance, greedy, "square"));

    let mistaken = square().backward(|run| run.inputs[0].slice::<i64>().map(|_| ()));
    let mut session = gradients_of(&instance, mistaken, "square").unwrap();
    let first = fails(Status::InvalidArgument, &["backward", "F32", "i64"], session.run());
    // The session is lost, and says so in each later call; others are not.
    assert_eq!(session.run().unwrap_err(), first);
    gradients_of(&instance, square(), "square").unwrap().run().unwrap();
}

#[test]
fn a_panic_never_crosses_the_abi() {
    let instance = Instance::new().unwrap();
    let panics = |message: &'static str| CustomOp::new("square", 1, 1, move |_| panic!("{message}"));
    let mut session = gradients_of(&instance, panics("in forward").backward(|_| Ok(())), "square").unwrap();
    fails(Status::InvalidArgument, &["custom op 'square'", "it panicked: in forward"], session.run());

    let panics = square().backward(|_| std::panic::panic_any(42));
    let mut session = gradients_of(&instance, panics, "square").unwrap();
    fails(Status::InvalidArgument, &["backward", "it panicked: not with words"], session.run());

    let panics = square().shape(|types| vec![types[7].clone()].into_iter().map(Ok).collect());
    fails(Status::InvalidArgument, &["it panicked: index out of bounds"], gradients_of(&instance, panics, "square"));

    /// Panics when it is dropped, too.
    struct Twice;
    impl Drop for Twice {
        fn drop(&mut self) {
            panic!("again");
        }
    }
    let panics = square().backward(|_| std::panic::panic_any(Twice));
    let mut session = gradients_of(&instance, panics, "square").unwrap();
    fails(Status::InvalidArgument, &["it panicked"], session.run());
    gradients_of(&instance, square(), "square").unwrap().run().unwrap();
}

/// A closure that asks for other workspace each time gets what was reserved, and no byte behind it.
#[test]
fn workspace_is_what_was_reserved() {
    let asked = Arc::new(AtomicUsize::new(0));
    let (count, seen) = (asked.clone(), Arc::new(AtomicUsize::new(0)));
    let noted = seen.clone();
    let growing = CustomOp::new("growing", 1, 1, move |run| {
        noted.store(run.workspace.len(), Ordering::SeqCst);
        run.workspace.fill(1);
        run.outputs[0].slice_mut::<f32>()?.fill(0.0);
        Ok(())
    })
    .workspace(move |_| Ok(1000 << (10 * count.fetch_add(1, Ordering::SeqCst))))
    .backward(|run| {
        run.input_gradients[0].slice_mut::<f32>()?.fill(0.0);
        Ok(())
    });
    let mut session = gradients_of(&Instance::new().unwrap(), growing, "growing").unwrap();
    session.run().unwrap();
    assert_eq!((asked.load(Ordering::SeqCst), seen.load(Ordering::SeqCst)), (1, 1000));
}

/// `cairn.h` forbids callbacks to call cairn: it is an error here, and not a lock-up.
#[test]
fn closures_cannot_call_cairn() {
    let (instance, inner) = (Instance::new().unwrap(), std::sync::Mutex::new(Instance::new().unwrap()));
    let calling = square().backward(move |_| inner.lock().unwrap().graph().map(|_| ()));
    let mut session = gradients_of(&instance, calling, "square").unwrap();
    fails(Status::WrongState, &["custom op 'square'", "calls cairn"], session.run());
}

/// Closures live as long as the last object that may call them, whatever is dropped first.
#[test]
fn closures_outlive_what_calls_them() {
    struct Gone(Arc<AtomicBool>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let gone = Arc::new(AtomicBool::new(false));
    let held = Gone(gone.clone());
    let op = square().shape(move |types| {
        assert!(!held.0.load(Ordering::SeqCst));
        Ok(types.to_vec())
    });
    let mut session = gradients_of(&Instance::new().unwrap(), op, "square").unwrap(); // all else is dropped
    session.run().unwrap();
    assert!(!gone.load(Ordering::SeqCst));
    drop(session);
    assert!(gone.load(Ordering::SeqCst));
}
