//! One attack in a place made anew each time: with the watchdog alone, with the sandbox alone, with both under
//! `all`, and with nothing.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use attache_core::ports::tool::{Access, NetworkGrant, WriteGrant};
use attache_core::ports::{ToolOutcome, ToolPlan, ToolRuntime};
use attache_core::watchdog::{
    Action, Approval, Commands, Containment, Judge, Judged, Matter, PatternBase, Rulebook, Rules,
};
use attache_sandbox::Level;
use serde_json::{Value, json};

use super::table::Attack;
use super::world::{Harm, World};
use crate::trial::Trial;

type Found = BTreeMap<Harm, String>;

/// Everything that is wrong with one attack.
pub(super) async fn problems(place: &Path, attack: &Attack) -> Vec<String> {
    let mut problems = Vec::new();
    problems.extend(with_nothing(place, attack));
    let world = World::new(place, attack);
    let (said, is_spent) = with_watchdog(place, attack, &world).await;
    problems.extend(said);
    let world = match is_spent {
        true => {
            drop(world);
            World::new(place, attack)
        }
        false => world,
    };
    match attack.tool {
        "bash" => {
            // Unasked first: it has to leave everything as it was, so that the next one finds the same place.
            for level in [Level::Full, Level::Reduced] {
                problems.extend(with_sandbox(place, attack, &world, level, WriteGrant::Withheld).await);
            }
            problems.extend(with_sandbox(place, attack, &world, Level::Full, WriteGrant::Granted).await);
            drop(world);
            let world = World::new(place, attack);
            problems.extend(with_sandbox(place, attack, &world, Level::Reduced, WriteGrant::Granted).await);
        }
        // What holds the other tools is the check at the time of use: nothing of a level.
        _ => {
            problems.extend(with_check_at_use(place, attack, &world).await);
            drop(world);
        }
    }
    problems.extend(under_all(place, attack).await);
    let named = |problem| format!("{} {}: {problem}", attack.row, attack.name);
    problems.into_iter().map(named).collect()
}

/// The control: an attack that fails by itself shows nothing.
fn with_nothing(place: &Path, attack: &Attack) -> Option<String> {
    let expected = attack.reaches?;
    let world = World::new(place, attack);
    let call = attack.call(&world.names());
    let told = match attack.tool {
        "bash" => world.bare(&call).0,
        tool => as_a_naive_tool(tool, &world.root(), &serde_json::from_str(&call).unwrap()),
    };
    let harm = afterwards(&world, attack, &told, seen);
    (!harm.contains_key(&expected)).then(|| format!("bare, it does not reach {expected:?}: {told:.400}"))
}

/// What a tool would do that follows every path and address.
fn as_a_naive_tool(tool: &str, root: &Path, input: &Value) -> String {
    let field = |name: &str| input[name].as_str().unwrap_or_default();
    let path = root.join(field("path"));
    let write = |text: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).and_then(|()| std::fs::write(&path, text))
    };
    let done = match tool {
        "read" => return std::fs::read_to_string(&path).unwrap_or_else(|error| error.to_string()),
        "write" => write(field("content")),
        "edit" => std::fs::read_to_string(&path)
            .and_then(|text| write(&text.replace(field("old_string"), field("new_string")))),
        "web_fetch" => url::Url::parse(field("url"))
            .unwrap()
            .socket_addrs(|| None)
            .and_then(|addresses| TcpStream::connect(&addresses[..])?.write_all(b"GET / HTTP/1.0\r\n\r\n")),
        other => panic!("no control for {other}"),
    };
    done.map_or_else(|error| error.to_string(), |()| "done".to_owned())
}

/// Nothing else holds: what it lets pass must do no harm. Whether it had to be run is told, too.
async fn with_watchdog(place: &Path, attack: &Attack, world: &World) -> (Vec<String>, bool) {
    let mut problems = Vec::new();
    let trial = Trial::beneath(place.to_owned()).hold(Level::None);
    let input = input(world, attack);
    let plan = trial.plan(attack.tool, input.clone()).await;
    let said = match &plan {
        Ok(plan) => action(&trial, attack, plan, Approval::Ask).as_str(),
        // Not even understood: an answer to the model.
        Err(_) => "refuse",
    };
    if said != attack.verdict {
        problems.push(format!("the watchdog says {said}, not {}: {plan:?}", attack.verdict));
    }
    let passes = plan.is_ok_and(|plan| action(&trial, attack, &plan, Approval::Edits) == Action::Allow);
    let runs = passes || said == "allow";
    if runs {
        let told = told(&trial, attack, input, trial.runtime()).await;
        problems.extend(harmful(afterwards(world, attack, &told, seen), "let pass by the watchdog"));
    }
    (problems, runs)
}

/// With anything less than a user who said that nothing shall hold commands, every command asks.
fn action(trial: &Trial, attack: &Attack, plan: &ToolPlan, approval: Approval) -> Action {
    judged(trial, attack, plan, approval, Containment::ExplicitlyOff).verdict.action
}

fn judged(
    trial: &Trial,
    attack: &Attack,
    plan: &ToolPlan,
    approval: Approval,
    containment: Containment,
) -> Judged {
    let workspace = &trial.workspace;
    let ground = PatternBase { root: &workspace.root, home: workspace.guarded.home() };
    let judge = Judge {
        rules: &Rulebook::new(&[], &[], &Rules::default(), ground),
        commands: Commands::Any,
        approval,
        containment: &containment.into(),
        workspace,
        granted: &[],
    };
    let effect = trial.tool(attack.tool).spec().effect;
    judge.judge(&Matter { tool: attack.tool, effect, accesses: &plan.accesses })
}

/// Everything passes; only the kernel holds it.
async fn with_sandbox(
    place: &Path,
    attack: &Attack,
    world: &World,
    level: Level,
    writes: WriteGrant,
) -> Vec<String> {
    // What the reduced level does not say that it holds: each command asks there.
    let is_held = |harm: &Harm| match (level, harm) {
        (Level::Reduced, Harm::Protected) => writes == WriteGrant::Withheld,
        (Level::Reduced, Harm::Mode) => false,
        (Level::Reduced, Harm::Change) => false,
        (Level::Full | Level::None, Harm::Change) => writes == WriteGrant::Withheld,
        (_, Harm::Leak | Harm::Sink | Harm::Outside) | (_, Harm::Mode | Harm::Protected) => true,
    };
    if attack.reaches.is_some_and(|harm| !is_held(&harm)) {
        return Vec::new();
    }
    let trial = Trial::beneath(place.to_owned()).hold(level);
    let runtime = ToolRuntime { writes, ..trial.runtime() };
    let told = told(&trial, attack, input(world, attack), runtime).await;
    let mut harm = afterwards(world, attack, &told, |world, _, told| world.harm(told));
    harm.retain(|harm, _| is_held(harm));
    harmful(harm, &format!("{level:?}, writing {writes:?}"))
}

/// Nobody is asked about anything: the watchdog and the full sandbox hold it together.
async fn under_all(place: &Path, attack: &Attack) -> Vec<String> {
    let world = World::new(place, attack);
    let trial = Trial::beneath(place.to_owned()).hold(Level::Full);
    let input = input(&world, attack);
    let Ok(plan) = trial.plan(attack.tool, input.clone()).await else { return Vec::new() };
    let judged = judged(&trial, attack, &plan, Approval::All, Containment::Full);
    if judged.verdict.action != Action::Allow {
        return Vec::new();
    }
    let paths = plan.accesses.iter().filter_map(|access| match access {
        Access::ReadPath(path) | Access::WritePath(path) => Some(path.clone()),
        Access::Command(_) | Access::Network { .. } => None,
    });
    let mut runtime = trial.runtime();
    runtime.site.granted = judged.grants.into();
    runtime.site.judged = Some(paths.collect());
    let runtime = ToolRuntime { network: judged.network, writes: judged.writes, ..runtime };
    let told = told(&trial, attack, input, runtime).await;
    harmful(afterwards(&world, attack, &told, seen), "under `all`")
}

/// Everything passes; only the tool itself looks where its path or address leads.
async fn with_check_at_use(place: &Path, attack: &Attack, world: &World) -> Vec<String> {
    let trial = Trial::beneath(place.to_owned()).hold(Level::None);
    let told = told(&trial, attack, input(world, attack), trial.runtime()).await;
    harmful(seen(world, attack, &told), "by the tool alone")
}

/// What has come of it, and of what its user does then.
fn afterwards(world: &World, attack: &Attack, told: &str, seen: fn(&World, &Attack, &str) -> Found) -> Found {
    let Some(then) = attack.then(&world.names()) else { return seen(world, attack, told) };
    let mut harm = seen(world, attack, &format!("{told}{}", world.bare(&then).0));
    harm.retain(|harm, _| matches!(harm, Harm::Leak | Harm::Sink | Harm::Outside));
    harm
}

/// Commands may read what lies outside and is no secret, tools for files may not.
fn seen(world: &World, attack: &Attack, told: &str) -> Found {
    let mut harm = match attack.tool {
        "bash" => world.harm(told),
        _ => world.harm_by_tool(told),
    };
    harm.remove(&Harm::Change);
    harm
}

fn input(world: &World, attack: &Attack) -> Value {
    let call = attack.call(&world.names());
    match attack.tool {
        "bash" if !call.starts_with("{\"command\"") => json!({"command": call, "timeout_ms": 20_000}),
        _ => serde_json::from_str(&call).unwrap(),
    }
}

/// Everything that a model or a client is told of a call.
async fn told(trial: &Trial, attack: &Attack, input: Value, runtime: ToolRuntime) -> String {
    assert_eq!(runtime.network, NetworkGrant::Withheld, "{}", attack.name);
    let outcome = trial.tool(attack.tool).run(input, runtime).await;
    let live = format!("{:?}", trial.progress.shown.lock().unwrap());
    let told = match outcome {
        ToolOutcome::Output { data, presentation } => format!("{data}\n{presentation:?}"),
        ToolOutcome::Picture { found, .. } => String::from_utf8_lossy(&found.bytes).into_owned(),
        ToolOutcome::Error { text, presentation } => {
            assert!(!text.contains("could not be started"), "{}: {text}", attack.name);
            format!("{text}\n{presentation:?}")
        }
    };
    told + &live
}

fn harmful(harm: Found, when: &str) -> Vec<String> {
    harm.into_iter().map(|(kind, proof)| format!("{when}: {kind:?}: {proof}")).collect()
}
