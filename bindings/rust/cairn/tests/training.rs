//! Training: the example's run, stores of several programs, what steppers and plans are asked for.
mod support;
#[path = "../examples/train.rs"]
mod train;

use cairn::{
    Amp, AmpRule, Checkpoint, Costs, Decision, Lane, LossScale, Outcome, ParameterGroup, PlanOptions, PlanSet, Policy,
    RegionPolicy, Render, Schedule, Status, StepperOptions, Tier,
};
use support::*;

#[test]
fn the_example_does_what_it_says() {
    let (folder, mut out) = (Folder::new(), Vec::new());
    assert!(train::run(folder.path(), &mut out).unwrap(), "{}", String::from_utf8_lossy(&out));
    let mut again = Vec::new();
    assert!(train::run(folder.path(), &mut again).unwrap());
    assert_eq!(out, again, "the same bits each time");
}

#[test]
fn resuming_gives_the_same_bits() {
    let (instance, device) = cpu();
    let (folder, plan) = (Folder::new(), plan(&instance, &device));
    let options = StepperOptions::new(0.01).micro_steps(2);
    let mut whole = stepper(&plan, &device, &options);
    let mut losses = Vec::new();
    for index in 0..20 {
        if index == 11 {
            let note = folder.join("note.txt");
            std::fs::write(&note, "kept").unwrap();
            whole.save(folder.join("step-5"), &[("step", "5 and a half")], &[&note]).unwrap();
        }
        losses.push(step(&mut whole, index).unwrap());
    }
    let checkpoint = Checkpoint::open(&instance, folder.path()).unwrap(); // the newest one below
    assert_eq!(checkpoint.metadata("step"), Some("5 and a half"));
    assert_eq!(checkpoint.metadata("none"), None);
    assert!(checkpoint.directory().ends_with("step-5"));
    assert_eq!(std::fs::read_to_string(folder.join("step-5").join("note.txt")).unwrap(), "kept");
    let graph = checkpoint.graph().unwrap();
    assert_eq!(graph.parameters().count(), 6);

    let plan = graph.plan_with(&device, &PlanOptions::new().policy(Policy::Recompute)).unwrap();
    let mut resumed = stepper(&plan, &device, &options);
    resumed.restore(&checkpoint).unwrap();
    assert_eq!((resumed.report().unwrap().step, resumed.report().unwrap().micro), (5, 1));
    for index in 11..20 {
        assert_eq!(step(&mut resumed, index).unwrap().to_bits(), losses[index as usize].to_bits());
    }
    assert_eq!(resumed.session().digest().unwrap(), whole.session().digest().unwrap());

    Checkpoint::remove(&instance, folder.join("step-5")).unwrap();
    fails(Status::NotFound, &[], Checkpoint::open(&instance, folder.join("step-5")));
    assert_eq!(checkpoint.graph().unwrap().parameters().count(), 6, "opened ones can be read on");
}

#[test]
fn programs_share_one_store() {
    let (instance, device) = cpu();
    let (train, short) = (training_graph(&instance), training_graph_of(&instance, 2).unwrap());
    let test = predicting_graph(&instance, 4).unwrap();
    let programs = [("train", &train), ("short", &short), ("test", &test)];
    let plans = PlanSet::new(&programs, &device, &PlanOptions::new().optimizer("sgd")).unwrap();
    assert_eq!(plans.len(), 3);
    assert!(plans.get("test").unwrap().states().next().is_none() && plans.get("none").is_err());
    let mut store = plans.sessions(&device).unwrap();
    store.session("train").unwrap().initialise(3).unwrap();
    let before = store.session("test").unwrap().digest().unwrap();
    assert_eq!(store.names().collect::<Vec<_>>(), ["train", "short", "test"]);

    let mut stepper = store.stepper("train", &StepperOptions::new(0.1).micro_steps(2)).unwrap();
    step(&mut stepper, 0).unwrap();
    let (x, target) = batch(1, 2);
    stepper.session_of("short").unwrap().write("x", &x).unwrap();
    stepper.session_of("short").unwrap().write("target", &target).unwrap();
    let report = stepper.micro_on("short").unwrap();
    assert_eq!((report.outcome, report.step_weight), (Outcome::Applied, (ROWS + 2) as f64));
    stepper.session_of("test").unwrap().write("x", &batch(2, 4).0).unwrap();
    stepper.session_of("test").unwrap().run().unwrap();
    let y = stepper.session_of("test").unwrap().read_vec::<f32>("y", 4).unwrap();
    assert!(y.iter().all(|y| y.is_finite()));
    let words = ["'none'", "train, short, test"];
    fails(Status::NotFound, &words, stepper.session_of("none"));
    fails(Status::NotFound, &words, stepper.micro_on("none"));
    let mut store = stepper.into_store();
    assert_ne!(store.session("test").unwrap().digest().unwrap(), before);
}

#[test]
fn groups_hypers_and_schedules() {
    let (instance, device) = cpu();
    let options = PlanOptions::new()
        .optimizer("lion")
        .hyper("beta2", 0.98)
        .hyper_of("", "weight_decay", 0.25)
        .group(ParameterGroup::new("*.bias").optimizer("sgd").hyper("momentum", 0.5));
    let plan = training_graph(&instance).plan_with(&device, &options).unwrap();
    let mut states: Vec<_> = plan.states().map(|state| state.name.to_string()).collect();
    states.sort();
    assert_eq!(states.iter().filter(|name| name.ends_with(".bias/momentum")).count(), 3, "{states:?}");
    assert_eq!(states.iter().filter(|name| name.ends_with(".weight/m")).count(), 3, "{states:?}");

    let cosine = Schedule::new("onecycle").value("pct_start", 0.5).word("anneal", "linear");
    let mut stepper = stepper(&plan, &device, &StepperOptions::new(0.01).total_steps(10).then(cosine));
    assert_eq!(stepper.hyper(Some("*.bias"), "momentum").unwrap(), 0.5);
    assert_eq!(stepper.hyper(None, "beta2").unwrap(), 0.98);
    assert_eq!(stepper.hyper(Some(""), "weight_decay").unwrap(), 0.25);
    stepper.set_hyper(Some("*.bias"), "rate_scale", 0.0).unwrap();
    step(&mut stepper, 0).unwrap();
    let biases = stepper.session().read_vec::<f32>("first.bias", WIDTH as usize).unwrap();
    assert!(biases.iter().all(|&bias| bias == 0.0), "at a rate of 0 they stay");
    fails(Status::InvalidArgument, &["nonsense"], stepper.set_hyper(None, "nonsense", 1.0));
    stepper.configure(&StepperOptions::new(0.02).hyper_of("*.bias", "momentum", 0.25)).unwrap();
    assert_eq!(stepper.hyper(Some("*.bias"), "momentum").unwrap(), 0.25);
    let unknown = Schedule::new("sawtooth");
    for count in [(1 << 27) + 1, usize::MAX] {
        fails(Status::InvalidArgument, &["count is"], cairn::schedule_rates(&StepperOptions::new(1.0), 0, count));
    }
    fails(Status::InvalidArgument, &["sawtooth"], cairn::schedule_rates(&StepperOptions::new(1.0).then(unknown), 0, 0));
}

#[test]
fn mixed_precision_by_rule() {
    let (instance, device) = cpu();
    let graph = training_graph(&instance);
    let options = PlanOptions::new().amp(Amp::Bf16).amp_rule(AmpRule::op("linear", "full").in_region("first"));
    let plan = graph.plan_with(&device, &options).unwrap();
    let classes: Vec<_> = plan.ops().map(|op| (op.op, op.region, op.amp_class, op.amp_rule)).collect();
    assert_eq!(classes[0], ("linear", "first", "full", Some(0)));
    assert_eq!(classes[1], ("linear", "second", "half", None));
    let rule = AmpRule::region("nowhere", "full");
    fails(Status::InvalidArgument, &["nowhere"], graph.plan_with(&device, &PlanOptions::new().amp_rule(rule)));

    let plan = graph.plan_with(&device, &PlanOptions::new().amp(Amp::Fp16)).unwrap();
    let scale = LossScale { initial: 1e30, backoff: 0.25, ..LossScale::default() };
    let mut stepper = stepper(&plan, &device, &StepperOptions::new(0.01).loss_scale(scale));
    step(&mut stepper, 0).unwrap();
    let report = stepper.report().unwrap();
    assert_eq!((report.skipped_steps, report.step), (1, 1), "gradients are not finite at this scale");
    step(&mut stepper, 1).unwrap();
    let (x, target) = batch(2, ROWS);
    stepper.session().write("x", &x).unwrap();
    stepper.session().write("target", &target).unwrap();
    assert_eq!(stepper.micro().unwrap().loss_scale, 1e30 / 16.0);
}

#[test]
fn accumulation_and_its_ends() {
    let (instance, device) = cpu();
    let mut stepper = stepper(&plan(&instance, &device), &device, &StepperOptions::new(0.01).micro_steps(4));
    step(&mut stepper, 0).unwrap();
    assert_eq!(stepper.report().unwrap().micro, 1);
    fails(Status::WrongState, &[], stepper.configure(&StepperOptions::new(0.1)));
    stepper.discard().unwrap();
    assert_eq!(stepper.report().unwrap().micro, 0);
    step(&mut stepper, 0).unwrap();
    let report = stepper.apply().unwrap();
    assert_eq!((report.outcome, report.step), (Outcome::Applied, 1));
    assert!(report.gradient_norm > 0.0);
}

#[test]
fn plans_tell_of_themselves() {
    let (instance, device) = cpu();
    let options = PlanOptions::new().policy(Policy::Offload).tier(Tier::Host);
    let plan = training_graph_of(&instance, 512).unwrap().plan_with(&device, &options).unwrap();
    let offloaded: Vec<_> = plan.values().filter(|value| value.decision == Decision::Offload).collect();
    assert!(!offloaded.is_empty() && offloaded.iter().all(|value| value.tier == Tier::Host));
    assert_eq!(plan.values().count() as u64, plan.summary().unwrap().value_count);
    assert!(plan.summary().unwrap().peak_bytes[1] > 0);
    let host = plan.memory(cairn::Tier::Host).unwrap();
    let sum = host.parameters_bytes + host.gradients_bytes + host.optimizer_bytes + host.activations_bytes;
    assert_eq!(sum + host.workspace_bytes, plan.summary().unwrap().peak_bytes[1]);
    assert!(!plan.memory(cairn::Tier::Device).unwrap().peak_at.is_empty());
    let json = plan.render(Render::PlanJson, "").unwrap();
    assert!(json.as_str().unwrap().contains("cairn.plan/1"));
    assert!(plan.render(Render::Svg, "title").unwrap().to_string().contains("<svg"));
    let problem = plan.render(Render::ProblemJson, "").unwrap();
    let solved = instance.solve_problem(problem.as_str().unwrap(), 0, Render::PlanJson).unwrap();
    assert!(solved.as_str().unwrap().contains("cairn.plan/1"));
    let too_many = (0..5).fold(PlanOptions::new(), |options, _| options.tier(Tier::Host));
    fails(Status::InvalidArgument, &["5 tiers", "4 at most"], training_graph(&instance).plan_with(&device, &too_many));
}

#[test]
fn regions_have_policies_by_their_paths() {
    let (instance, device) = cpu();
    let graph = training_graph_of(&instance, 512).unwrap();
    let offloaded = |options: PlanOptions| {
        let plan = graph.plan_with(&device, &options).unwrap();
        let mut regions: Vec<String> = Vec::new();
        for value in plan.values().filter(|value| value.decision == Decision::Offload) {
            assert_eq!(value.tier, Tier::Disk);
            regions.push(value.region.to_string());
        }
        regions.sort();
        regions.dedup();
        regions
    };
    let away = |pattern| RegionPolicy::new(pattern, Policy::Offload).tier(Tier::Disk);
    assert_eq!(offloaded(PlanOptions::new().region(away("first"))), ["first"]);
    let kept = RegionPolicy::new("se*", Policy::Keep);
    assert_eq!(offloaded(PlanOptions::new().region(away("[fs]*")).region(kept.clone())), ["first"]);
    let all = PlanOptions::new().policy(Policy::Offload).tier(Tier::Disk);
    assert_eq!(offloaded(all.clone().region(kept)), ["first"]);
    assert!(offloaded(all).contains(&"second".to_string()));
    let typo = PlanOptions::new().region(RegionPolicy::new("frist", Policy::Keep));
    fails(Status::NotFound, &["'frist'", "'first'"], graph.plan_with(&device, &typo));
    let tier = PlanOptions::new().region(RegionPolicy::new("first", Policy::Keep).tier(Tier::Host));
    fails(Status::InvalidArgument, &["'first'", "OFFLOAD only"], graph.plan_with(&device, &tier));
}

#[test]
fn traced_runs_fill_a_profile() {
    let (instance, device) = cpu();
    let graph = training_graph(&instance);
    let plan = graph.plan(&device).unwrap();
    let mut stepper = stepper(&plan, &device, &StepperOptions::new(0.01));
    let mut costs = Costs::new(&device).unwrap();
    fails(Status::WrongState, &[], costs.add_run(&stepper.session(), 0.0, 0.0));
    stepper.session().trace(true).unwrap();
    step(&mut stepper, 0).unwrap();
    let session = stepper.session();
    assert!(session.spans().all(|span| span.lane == Lane::Compute && !span.name.is_empty()));
    assert!(session.spans().count() as u64 >= plan.summary().unwrap().op_count);
    costs.add_run(&session, 0.0, 0.0).unwrap();
    assert_eq!(costs.measure_kernels(&plan, &device).unwrap(), 0, "a CPU has nothing to choose");
    let planned = graph.plan_with(&device, &PlanOptions::new().costs(&costs).micro_steps(2)).unwrap();
    let summary = planned.summary().unwrap();
    assert_eq!(planned.counter("measured_ops").unwrap(), summary.op_count as f64);
    assert!(costs.json().unwrap().as_str().unwrap().contains("cairn.profile/1"));
}
