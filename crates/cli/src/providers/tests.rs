//! Which providers are usable and which are not, in which order, with which models and which header.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use attache_core::ports::Model;
use attache_core::ports::model::{ModelInfo, ThoughtLevel};
use attache_models::{AuthHeader, Secret};
use clap::Parser;

use super::ask::is_to_be_asked;
use super::words::key_hint;
use super::*;
use crate::args::Args;
use crate::config::ProcessEnvironment;
use crate::credentials::KeyPlace;
use crate::dirs::Dirs;
use crate::setup::Sources;

struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    fn with(config: &str) -> Self {
        let home = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::write(home.path("config.toml"), config).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn sources(&self, variables: &[(&str, &str)]) -> Sources {
        let mut variables = variables.to_vec();
        variables.push(("ATTACHE_HOME", self.directory.path().to_str().unwrap()));
        let environment = ProcessEnvironment::from_pairs(&variables);
        let dirs = Dirs::from_environment(&environment).unwrap();
        let config = Config::load(&Args::parse_from(["attache", "acp"]), &environment, &dirs).unwrap();
        Sources::new(config, dirs, &environment)
    }
}

/// The state of a provider, in a word or two.
fn standing(sources: &Sources, name: &str) -> String {
    let keys = sources.credentials.read();
    let standings = standings(&sources.config, &keys);
    let standing = standings.iter().find(|standing| standing.provider.name == name).unwrap();
    match &standing.state {
        ProviderState::Scripted => "scripted".to_owned(),
        ProviderState::Ready(Some(key)) => format!("key from {key}"),
        ProviderState::Ready(None) => "no key needed".to_owned(),
        ProviderState::PerhapsRunning => "perhaps".to_owned(),
        ProviderState::NoKey => "no key".to_owned(),
        ProviderState::NoAddress => "no address".to_owned(),
        ProviderState::KeyTrouble(_) => "trouble".to_owned(),
    }
}

#[test]
fn a_provider_stands_as_its_key_its_address_and_its_owner_say() {
    let gateway = "[providers.mine]\ndialect = \"anthropic\"\nbase_url = \"https://gate.example\"\n";
    let named = "[providers.openai]\napi_key_env = \"MY_KEY\"\nbase_url = \"http://127.0.0.1:1/v1\"\n";
    type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, &'a str);
    let table: &[Row<'_>] = &[
        ("", &[], "openai", "no key"),
        ("", &[("OPENAI_API_KEY", "k")], "openai", "key from OPENAI_API_KEY"),
        ("", &[("OPENAI_API_KEY", " ")], "openai", "no key"),
        ("", &[("GOOGLE_API_KEY", "k")], "gemini", "key from GOOGLE_API_KEY"),
        ("", &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")], "openai", "no key needed"),
        ("", &[("OPENAI_BASE_URL", "https://gate.example/v1")], "openai", "no key"),
        ("", &[("AZURE_API_KEY", "k")], "azure", "no address"),
        (
            "",
            &[("AZURE_API_KEY", "k"), ("AZURE_BASE_URL", "https://me.example")],
            "azure",
            "key from AZURE_API_KEY",
        ),
        ("", &[], "ollama", "perhaps"),
        ("", &[("OLLAMA_BASE_URL", "http://10.0.0.1:1/v1")], "ollama", "no key needed"),
        ("[providers.ollama]\n", &[], "ollama", "no key needed"),
        (gateway, &[], "mine", "no key needed"),
        (gateway, &[("MINE_API_KEY", "k")], "mine", "key from MINE_API_KEY"),
        (named, &[("OPENAI_API_KEY", "k")], "openai", "no key"),
        (named, &[("MY_KEY", "k")], "openai", "key from MY_KEY"),
    ];
    for (config, variables, provider, expected) in table {
        let home = Home::with(config);
        assert_eq!(standing(&home.sources(variables), provider), *expected, "{config}{variables:?}");
    }
}

#[test]
fn a_file_of_keys_that_others_can_read_is_trouble_only_for_those_who_need_a_key() {
    let home = Home::with("");
    let sources = home.sources(&[("XAI_API_KEY", "k")]);
    sources.credentials.store("openai", &Secret::new("key").unwrap(), KeyPlace::File).unwrap();
    let file = sources.credentials.file();
    assert_eq!(standing(&sources, "openai"), format!("key from {}", file.display()));
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o604)).unwrap();
    assert_eq!(standing(&sources, "openai"), "trouble");
    assert_eq!(standing(&sources, "ollama"), "perhaps");
    assert_eq!(standing(&sources, "xai"), "key from XAI_API_KEY");
}

#[test]
fn the_usual_model_is_that_of_the_first_who_can_be_used_those_of_the_file_first() {
    let usual = |config: &str, variables: &[(&str, &str)]| {
        let home = Home::with(config);
        let sources = home.sources(variables);
        let keys = sources.credentials.read();
        let model = usual_model(&standings(&sources.config, &keys), &sources.opener);
        model.map(|model| model.to_string()).unwrap_or_default()
    };
    let keys = [("GROQ_API_KEY", "k"), ("OPENAI_API_KEY", "k")];
    assert_eq!(usual("", &[]), "");
    assert!(usual("", &keys).starts_with("openai/gpt-"), "{}", usual("", &keys));
    assert!(usual("[providers.groq]\n", &keys).starts_with("groq/"), "the file's first");
    assert!(usual("[providers.anthropic]\n", &keys).starts_with("openai/"), "it has no key");
    let own = "[providers.own]\ndialect = \"openai-chat\"\nbase_url = \"https://gate.example/v1\"\n";
    assert!(usual(own, &keys).starts_with("openai/"), "nobody knows its models");
    assert_eq!(usual(&format!("{own}[providers.own.models.m]\n"), &keys), "own/m");
    assert_eq!(usual("[providers.s]\ndialect = \"script\"\nscript = \"x\"\n", &keys), "s/default");
}

#[test]
fn titles_are_made_by_the_small_model_of_the_same_vendor_if_it_has_a_key() {
    let small = |config: &str, variables: &[(&str, &str)]| {
        let home = Home::with(config);
        let sources = home.sources(variables);
        let keys = sources.credentials.read();
        let model = usual_small_model(&sources.config, &standings(&sources.config, &keys), &sources.opener);
        model.map(|model| model.to_string()).unwrap_or_default()
    };
    let key = [("ANTHROPIC_API_KEY", "k")];
    assert!(small("", &key).starts_with("anthropic/claude-haiku"), "{}", small("", &key));
    assert_eq!(small("model = \"ollama/x\"\n", &key), "", "not another vendor's");
    assert_eq!(small("model = \"openai/x\"\n", &key), "", "that one has no key");
    assert_eq!(small("", &[]), "");
}

fn listed(sources: &Sources, provider: &str, found: &[ModelInfo]) -> Vec<(String, u64)> {
    let provider = sources.config.provider(provider).unwrap();
    let listed = sources.opener.listed(provider, found);
    listed.into_iter().map(|info| (info.model.model_id, info.context)).collect()
}

#[test]
fn models_are_those_of_the_catalogue_as_the_configuration_states_them() {
    let plain = Home::with("").sources(&[]);
    let known = listed(&plain, "anthropic", &[]);
    let (second, size) = known[1].clone();
    assert_ne!(size, 77);
    let home = Home::with(&format!(
        "[providers.anthropic.models.\"{second}\"]\ncontext = 77\n[providers.anthropic.models.new]\ncontext = 5\nreasoning = true\n"
    ));
    let sources = home.sources(&[]);
    let models = listed(&sources, "anthropic", &[]);
    assert_eq!(models[0], known[0], "the default stays");
    assert_eq!(models[1], (second, 77), "stated in its place");
    assert_eq!(models.last().unwrap(), &("new".to_owned(), 5), "what nobody knows comes last");
    let new = sources.opener.described(
        sources.config.provider("anthropic").unwrap(),
        &ModelRef::new("anthropic", "new"),
        &[],
    );
    assert_eq!(new.thought_levels, [ThoughtLevel::Low, ThoughtLevel::Medium, ThoughtLevel::High]);
    let found = [ModelInfo::undescribed(ModelRef::new("anthropic", "there"))];
    let models = listed(&plain, "anthropic", &found);
    assert_eq!(models, [("there".to_owned(), 128_000)], "a server that was asked knows best");
}

#[test]
fn the_key_travels_as_the_dialect_and_the_vendor_want_it() {
    let home = Home::with(
        "[providers.azure]\nbase_url = \"https://a\"\ndialect = \"openai-chat\"\n\
         [providers.openrouter]\ndialect = \"anthropic\"\n\
         [providers.mine]\nbase_url = \"https://m\"\ndialect = \"gemini\"\n",
    );
    let sources = home.sources(&[]);
    let header = |name: &str| {
        let provider = sources.config.provider(name).unwrap();
        let ProviderWire::Http(wire) = &provider.wire else { panic!("a script") };
        sources.opener.endpoint(provider, wire, None).unwrap().auth
    };
    assert_eq!(header("anthropic"), AuthHeader::XApiKey);
    assert_eq!(header("azure"), AuthHeader::ApiKey, "both of its dialects are OpenAI's");
    assert_eq!(header("openrouter"), AuthHeader::XApiKey, "not its own dialect");
    assert_eq!(header("mine"), AuthHeader::Goog);
}

#[test]
fn what_to_do_about_a_key_names_where_it_came_from() {
    let home = Home::with("");
    let sources = home.sources(&[]);
    let provider = sources.config.provider("groq").unwrap();
    let page = "Get a key at https://console.groq.com/keys.";
    let secret = Secret::new("sk-canary").unwrap();
    let environment = ApiKey::Environment { variable: "GROQ_API_KEY".to_owned(), secret: secret.clone() };
    let file = ApiKey::File { file: PathBuf::from("/h/credentials.json"), secret };
    for (key, expected) in [
        (None, format!("Set GROQ_API_KEY or run `attache auth login groq`. {page}")),
        (
            Some(&environment),
            format!(
                "The key comes from GROQ_API_KEY: set it to a valid one, or unset it and run `attache auth login groq`. {page}"
            ),
        ),
        (
            Some(&ApiKey::Keyring),
            format!("The key comes from the keyring: run `attache auth login groq` to replace it. {page}"),
        ),
        (
            Some(&file),
            format!(
                "The key comes from /h/credentials.json: run `attache auth login groq` to replace it. {page}"
            ),
        ),
    ] {
        assert_eq!(key_hint(provider, key), expected);
    }
}

#[tokio::test]
async fn looking_again_finds_a_key_that_was_stored_and_misses_one_that_was_forgotten() {
    let home = Home::with(
        "[providers.ollama]\nbase_url = \"http://10.0.0.1:1/v1\"\n[providers.llamacpp]\nbase_url = \"http://10.0.0.1:1/v1\"\n\
         [providers.vllm]\nbase_url = \"http://10.0.0.1:1/v1\"\n[providers.lmstudio]\nbase_url = \"http://10.0.0.1:1/v1\"\n",
    );
    let sources = home.sources(&[]);
    let live = sources.live().unwrap();
    let model = ModelRef::new("openai", "any-name-at-all");
    assert!(live.available().is_empty() && live.describe(&model).is_none());
    sources.credentials.store("openai", &Secret::new("key").unwrap(), KeyPlace::File).unwrap();
    assert!(live.available().is_empty(), "nobody looked");
    live.look_again().await;
    assert!(live.available()[0].model.to_string().starts_with("openai/gpt-"));
    let described = live.describe(&ModelRef { variant: Some("high".to_owned()), ..model }).unwrap();
    assert_eq!((described.context, described.model.variant), (128_000, None), "taken as it is");
    assert!(live.describe(&ModelRef::new("ollama", "x")).is_some(), "any name of a server that needs no key");
    assert!(live.describe(&ModelRef::new("groq", "x")).is_none());
    sources.credentials.forget("openai").unwrap();
    live.look_again().await;
    assert!(live.available().is_empty());
}

#[test]
fn scripts_are_found_beside_the_file_and_models_are_as_stated() {
    let home = Home::with(
        "[providers.demo]\ndialect = \"script\"\nscript = \"demo.script\"\n[providers.demo.models.default]\nimages = true\n\
         [providers.demo.models.big]\ncontext = 500\nmax_output = 5\naudio = true\n",
    );
    std::fs::write(home.path("demo.script"), "model small context=10\non *\n text \"hi\"\n").unwrap();
    let models: Vec<_> = home
        .sources(&[])
        .live()
        .unwrap()
        .available()
        .iter()
        .map(|info| (info.model.model_id.clone(), info.context, info.max_output, info.images, info.audio))
        .collect();
    assert_eq!(
        models,
        [
            ("default".into(), 200_000, 32_000, true, false),
            ("small".into(), 10, 32_000, false, false),
            ("big".into(), 500, 5, false, true)
        ]
    );
}

#[test]
fn a_script_that_is_missing_or_wrong_is_named() {
    let home = Home::with("\n[providers.demo]\ndialect = \"script\"\nscript = \"demo.script\"\n");
    let path = home.directory.path().display().to_string();
    let error = || home.sources(&[]).live().unwrap_err().to_string().replace(&path, "~");
    assert_eq!(error(), "~/config.toml:4: `providers.demo.script` ~/demo.script: there is no such file");
    std::fs::write(home.path("demo.script"), "on *\n\n sya \"x\"\n").unwrap();
    assert!(error().starts_with("~/demo.script:3: expected on, reasoning, text,"), "{}", error());
}

#[test]
fn a_server_on_this_machine_tells_the_window_whatever_the_model_is_called() {
    let mine = |model: &str| {
        format!(
            "[providers.mine]\ndialect = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
             [providers.mine.models.\"my-model\"]\n{model}\n"
        )
    };
    let asked = |home: &Home| {
        let sources = home.sources(&[]);
        let keys = sources.credentials.read();
        let standings = standings(&sources.config, &keys);
        standings.iter().any(|standing| standing.provider.name == "mine" && is_to_be_asked(standing))
    };
    let home = Home::with(&mine("max_output = 100"));
    assert!(asked(&home), "nobody but the server knows its window");
    assert!(!asked(&Home::with(&mine("context = 9000"))), "the user has said it");
    let sources = home.sources(&[]);
    let provider = sources.config.provider("mine").unwrap();
    let served = ModelInfo::undescribed(ModelRef::new("mine", "/models/qwen.gguf"));
    let found = [ModelInfo { context: 40_960, images: true, ..served }];
    let described = sources.opener.described(provider, &ModelRef::new("mine", "my-model"), &found);
    assert_eq!((described.model.model_id.as_str(), described.context), ("my-model", 40_960));
    assert_eq!((described.max_output, described.images), (100, true), "what is stated stays");
    let listed = sources.opener.listed(provider, &found);
    let windows: Vec<_> = listed.iter().map(|info| info.context).collect();
    assert_eq!(windows, [40_960, 40_960]);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    /// If the user states a context, with or without an answer size, most of it is for the conversation.
    #[test]
    fn an_answer_takes_a_quarter_of_a_stated_context_at_most(
        context in 2_048_u64..1_000_000,
        stated in proptest::option::of(1_u64..1_000_000),
    ) {
        let stated = stated.map(|tokens| format!("max_output = {tokens}\n")).unwrap_or_default();
        let home = Home::with(&format!(
            "[providers.mine]\ndialect = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
             [providers.mine.models.\"m\"]\ncontext = {context}\n{stated}\
             [providers.openai.models.\"gpt-5\"]\ncontext = {context}\n{stated}"
        ));
        let sources = home.sources(&[]);
        for (provider, model) in [("mine", "m"), ("openai", "gpt-5")] {
            let configured = sources.config.provider(provider).unwrap();
            let info = sources.opener.described(configured, &ModelRef::new(provider, model), &[]);
            proptest::prop_assert_eq!(info.context, context);
            proptest::prop_assert!(info.max_output >= 1 && info.max_output <= context / 4, "{:?}", info);
        }
    }
}
