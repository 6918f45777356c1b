//! The first chat of a new user: asks three questions in the terminal, tries the chosen model, and writes the
//! file. Asks only a user without any configuration, and never twice; writes nothing before the end.

use std::process::ExitCode;

use anyhow::Result;
use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_core::watchdog::Approval;
use toml_edit::{DocumentMut, value};

use crate::answer;
use crate::args::{Args, ChatArgs};
use crate::auth::AuthCommands;
use crate::config::{Config, ProcessEnvironment, store_document};
use crate::doctor;
use crate::models;
use crate::providers::{LiveProviders, standings};
use crate::sandbox;
use crate::setup::{Sources, foreign_agent_here};
use crate::usage_error::INTERRUPTED;

mod asked;
mod found;

use asked::{PersonSaid, ask, choose};
use found::{FoundProvider, found};

/// How the first start ended.
#[derive(Debug)]
pub(crate) enum FirstStart {
    /// There is a configuration, or no person at the terminal.
    NotNeeded,
    /// With the new configuration.
    Configured(Box<Sources>),
    /// The user left.
    Left(ExitCode),
}

/// Leads the user to a model if there is no configuration yet.
pub(crate) async fn lead(args: &Args, chat: &ChatArgs, sources: &Sources) -> Result<FirstStart> {
    let is_asked_for = !chat.print && chat.agent_command.is_none();
    let is_new = sources.config.model.is_none() && !sources.config.file.exists();
    if !is_asked_for || !is_new || !answer::is_typed() || !answer::is_seen() {
        return Ok(FirstStart::NotNeeded);
    }
    if foreign_agent_here(sources).is_some() {
        return Ok(FirstStart::NotNeeded);
    }
    answer::note(WELCOME);
    match choices(sources).await? {
        PersonSaid::Answer(chosen) => {
            write(sources, &chosen)?;
            let environment = ProcessEnvironment::from_process();
            let config = Config::load(args, &environment, &sources.dirs)?;
            Ok(FirstStart::Configured(Box::new(Sources::new(config, sources.dirs.clone(), &environment))))
        }
        PersonSaid::Nothing => {
            answer::note("\nNothing was written. `attache models` shows the ways to a model.");
            Ok(FirstStart::Left(ExitCode::FAILURE))
        }
        PersonSaid::Interrupted => {
            answer::note("\nNothing was written.");
            Ok(FirstStart::Left(ExitCode::from(INTERRUPTED)))
        }
    }
}

const WELCOME: &str =
    "Welcome to attache. Three questions, then you can talk.\nEnter takes the first answer; Ctrl-C leaves.";

/// What is written at the end.
#[derive(Debug)]
struct FirstSettings {
    model: ModelRef,
    approval: Approval,
}

/// Asks the three questions; starts again if the model does not answer.
async fn choices(sources: &Sources) -> Result<PersonSaid<FirstSettings>> {
    loop {
        let live = sources.live()?;
        let place = match first_question(sources, &live).await? {
            PersonSaid::Answer(place) => place,
            PersonSaid::Nothing => return Ok(PersonSaid::Nothing),
            PersonSaid::Interrupted => return Ok(PersonSaid::Interrupted),
        };
        let model = match second_question(&place).await? {
            PersonSaid::Answer(model) => model,
            PersonSaid::Nothing => return Ok(PersonSaid::Nothing),
            PersonSaid::Interrupted => return Ok(PersonSaid::Interrupted),
        };
        let approval = match third_question(sources).await? {
            PersonSaid::Answer(approval) => approval,
            PersonSaid::Nothing => return Ok(PersonSaid::Nothing),
            PersonSaid::Interrupted => return Ok(PersonSaid::Interrupted),
        };
        answer::note(&format!("\nTrying {model} …"));
        match tried(sources, &live, &model).await {
            Ok(said) => {
                answer::note(&format!("{said}."));
                return Ok(PersonSaid::Answer(FirstSettings { model, approval }));
            }
            Err(trouble) => answer::note(&format!("That does not work: {trouble}")),
        }
        match choose(&["Choose again".to_owned(), format!("Take {model} all the same")]).await? {
            PersonSaid::Answer(0) => {}
            PersonSaid::Answer(_) => return Ok(PersonSaid::Answer(FirstSettings { model, approval })),
            PersonSaid::Nothing => return Ok(PersonSaid::Nothing),
            PersonSaid::Interrupted => return Ok(PersonSaid::Interrupted),
        }
    }
}

/// Where the model is: at a provider with a key, on this machine, or behind a key that we store now.
async fn first_question(sources: &Sources, live: &LiveProviders) -> Result<PersonSaid<FoundProvider>> {
    loop {
        let mut places = found(sources, live).await;
        answer::note("\n1/3  Which provider?");
        if places.is_empty() {
            answer::note("No key is set in the environment, and no model server runs on this machine.");
        }
        let mut rows: Vec<String> = places.iter().map(FoundProvider::told).collect();
        rows.push("Enter a key: Anthropic, OpenAI, Gemini, OpenRouter, …".to_owned());
        rows.push("Look again: I have started a server (ollama, llama.cpp, LM Studio, vLLM)".to_owned());
        let index = match choose(&rows).await? {
            PersonSaid::Answer(index) => index,
            PersonSaid::Nothing => return Ok(PersonSaid::Nothing),
            PersonSaid::Interrupted => return Ok(PersonSaid::Interrupted),
        };
        if index < places.len() {
            return Ok(PersonSaid::Answer(places.swap_remove(index)));
        }
        if index > places.len() {
            continue;
        }
        match AuthCommands::new(sources).login_to_chosen().await {
            Ok(provider) => {
                let now = found(sources, live).await.into_iter().find(|place| place.name == provider);
                match now {
                    Some(place) => return Ok(PersonSaid::Answer(place)),
                    None => answer::note(&format!("{provider} can't be used yet.")),
                }
            }
            Err(error) if error.is::<answer::Interrupted>() => return Ok(PersonSaid::Interrupted),
            Err(error) => answer::note(&format!("{error:#}")),
        }
    }
}

async fn second_question(place: &FoundProvider) -> Result<PersonSaid<ModelRef>> {
    answer::note("\n2/3  Which model?");
    let shown = &place.models[..place.models.len().min(MODELS_SHOWN)];
    let rows: Vec<String> = shown.iter().map(model_row).collect();
    let more = place.models.len() - shown.len();
    if more > 0 {
        answer::note(&format!(
            "     The first {MODELS_SHOWN}; {more} more by name: attache models {}",
            place.name
        ));
    }
    loop {
        let line = match ask(&rows).await? {
            PersonSaid::Answer(line) => line,
            PersonSaid::Nothing => return Ok(PersonSaid::Nothing),
            PersonSaid::Interrupted => return Ok(PersonSaid::Interrupted),
        };
        let named = |name: &str| ModelRef::new(&place.name, name);
        match (line.parse::<usize>(), line.as_str(), shown) {
            (_, "", [first, ..]) => return Ok(PersonSaid::Answer(first.model.clone())),
            (Ok(number), _, _) => match number.checked_sub(1).and_then(|index| shown.get(index)) {
                Some(info) => return Ok(PersonSaid::Answer(info.model.clone())),
                None => answer::note("That is not in the list: type a number or a name."),
            },
            (Err(_), "", []) => answer::note("Type the name of a model."),
            // With or without its provider, as `--model` takes it.
            (Err(_), name, _) => {
                let name = name.strip_prefix(&format!("{}/", place.name)).unwrap_or(name);
                return Ok(PersonSaid::Answer(named(name)));
            }
        }
    }
}

/// Enough to choose from; a user who wants another one knows its name.
const MODELS_SHOWN: usize = 8;

fn model_row(info: &ModelInfo) -> String {
    let price =
        info.price.as_ref().map(|price| format!(", {} per million tokens in and out", models::price(price)));
    format!(
        "{}  ({} context{})",
        info.model.model_id,
        models::tokens(info.context),
        price.unwrap_or_default()
    )
}

async fn third_question(sources: &Sources) -> Result<PersonSaid<Approval>> {
    answer::note("\n3/3  What may it do without asking you?");
    let wanted = sources.config.sandbox.value;
    // Do not offer a level that the start would refuse.
    let held = tokio::task::spawn_blocking(move || {
        sandbox::containment(wanted, sandbox::find(wanted, None).level()).permit(Approval::All)
    });
    let mut levels = vec![
        ("Read. It asks before it changes a file or runs a command", Approval::Ask),
        ("Change files of the directory it works in, too", Approval::Edits),
    ];
    if held.await?.is_ok() {
        levels.push(("Everything, commands too, as far as the sandbox lets it", Approval::All));
    }
    let rows: Vec<String> = levels.iter().map(|(row, _)| (*row).to_owned()).collect();
    let index = choose(&rows).await?;
    Ok(index.map(|index| levels.get(index).map_or(Approval::Ask, |(_, approval)| *approval)))
}

/// Asks the model for one word, in the way a session would.
async fn tried(sources: &Sources, live: &LiveProviders, model: &ModelRef) -> Result<String, String> {
    use attache_core::ports::Model;
    live.look_again().await;
    let keys = sources.credentials.read();
    let standings = standings(&sources.config, &keys);
    match standings.iter().find(|standing| standing.provider.name == model.provider_id) {
        Some(standing) => doctor::try_model(sources, live, standing, model).await,
        None => Err(format!("there is no provider {}", model.provider_id)),
    }
}

fn write(sources: &Sources, chosen: &FirstSettings) -> Result<()> {
    let mut document = DocumentMut::new();
    document.insert("model", value(chosen.model.to_string()));
    document.insert("approval", value(chosen.approval.as_str()));
    document.decor_mut().set_prefix(FILE_HEAD);
    sources.dirs.create()?;
    let file = &sources.config.file;
    store_document(file, &document)?;
    answer::note(&format!("Written to {}. `attache init` puts attache into your editor.\n", file.display()));
    Ok(())
}

const FILE_HEAD: &str = "\
# Written at the first start. `attache --print-config` shows every setting and where it comes from.
";
