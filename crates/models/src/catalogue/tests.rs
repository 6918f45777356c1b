//! The embedded catalogue fits the table of vendors. Other files may be incomplete; we refuse unreadable ones
//! with a clear error.

use attache_core::ports::model::{ModelInfo, Price, ThoughtLevel};
use attache_core::ports::store::ModelRef;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::vendors::VENDORS;

fn vendor(id: &str) -> &'static Vendor {
    Vendor::find(id).unwrap()
}

fn ids(catalogue: &Catalogue, id: &str) -> Vec<String> {
    catalogue.models(vendor(id), id).into_iter().map(|info| info.model.model_id).collect()
}

/// One model as models.dev has it, with some of its keys changed.
fn model(id: &str, changes: Value) -> Value {
    let mut model = json!({
        "id": id, "name": id, "family": "f", "attachment": true, "reasoning": true, "tool_call": true,
        "release_date": "2026-01-01", "last_updated": "2026-01-01", "open_weights": false,
        "modalities": {"input": ["text"], "output": ["text"]},
        "limit": {"context": 200_000, "output": 64_000},
    });
    for (key, value) in changes.as_object().unwrap() {
        model[key] = value.clone();
    }
    model
}

/// A catalogue made from these models of one models.dev provider.
fn trimmed(provider: &str, models: &[Value]) -> Catalogue {
    let models: serde_json::Map<String, Value> =
        models.iter().map(|model| (model["id"].as_str().unwrap().to_owned(), model.clone())).collect();
    let document = json!({ "unknown": {"models": {}}, provider: {"id": provider, "models": models} });
    Catalogue::from_models_dev(&document.to_string()).unwrap()
}

#[test]
fn the_embedded_catalogue_has_every_vendor_that_is_not_asked() {
    for vendor in VENDORS {
        let models = Catalogue::embedded().models(vendor, "mine");
        assert_eq!(models.is_empty(), vendor.shelf.models_dev.is_none(), "{}", vendor.id);
        assert!(models.len() <= 60, "{}: {} models", vendor.id, models.len());
        for info in &models {
            assert_eq!(info.model.provider_id, "mine");
            assert!(info.context >= 32_000 && (1..=info.context).contains(&info.max_output), "{info:?}");
        }
    }
}

#[test]
fn what_the_table_names_is_in_the_embedded_catalogue() {
    for vendor in VENDORS {
        let ids = ids(Catalogue::embedded(), vendor.id);
        for named in vendor.shelf.preferred.iter().chain(&vendor.small_model) {
            assert!(ids.iter().any(|id| id == named), "{}: no {named}", vendor.id);
        }
        assert_eq!(vendor.shelf.preferred.first().copied(), ids.first().map(String::as_str), "{}", vendor.id);
    }
}

#[test]
fn the_embedded_file_is_small_and_written_as_we_write() {
    assert!(EMBEDDED.len() < 60_000, "{} bytes", EMBEDDED.len());
    assert_eq!(Catalogue::parse(EMBEDDED).unwrap().to_json(), EMBEDDED);
}

#[test]
fn a_known_model_is_described_as_its_vendor_does() {
    let info =
        Catalogue::embedded().find(vendor("anthropic"), &ModelRef::new("work", "claude-haiku-4-5")).unwrap();
    let expected = ModelInfo {
        model: ModelRef::new("work", "claude-haiku-4-5"),
        name: "Claude Haiku 4.5 (latest)".to_owned(),
        context: 200_000,
        max_output: 50_000,
        images: true,
        audio: false,
        pdf: true,
        thought_levels: ThoughtLevel::ALL.to_vec(),
        price: Some(Price { input: 1.0, output: 5.0, cache_read: 0.1, cache_write: 1.25 }),
    };
    assert_eq!(info, expected);
}

#[test]
fn other_names_of_a_model_are_understood() {
    let found = |id: &str, name: &str| {
        let info = Catalogue::embedded().find(vendor(id), &ModelRef::new("p", name))?;
        assert_eq!(info.model.model_id, name, "what was asked for is what is used");
        Some((info.context, info.price.is_some()))
    };
    assert_eq!(found("anthropic", "claude-haiku-4-5-20251001"), Some((200_000, true)));
    assert_eq!(found("openai", "gpt-4o-2024-11-20"), Some((128_000, true)));
    assert_eq!(found("openrouter", "anthropic/claude-sonnet-5:nitro"), Some((1_000_000, false)));
    assert_eq!(found("openai", "gpt-99"), None);
    assert_eq!(found("ollama", "gpt-4o"), None);
}

#[test]
fn a_gateway_passes_on_sizes_but_not_prices() {
    let described = |vendor: Option<&Vendor>, name: &str| {
        Catalogue::embedded().describe(vendor, ModelRef::new("gate", name))
    };
    let passed_on = described(None, "us.anthropic.claude-haiku-4-5-20251001-v1:0");
    assert_eq!((passed_on.context, passed_on.images, passed_on.price), (200_000, true, None));
    assert_eq!(passed_on.model.to_string(), "gate/us.anthropic.claude-haiku-4-5-20251001-v1:0");
    let unknown = described(None, "house-model");
    assert_eq!(unknown, ModelInfo::undescribed(ModelRef::new("gate", "house-model")));
    let own = described(Some(vendor("ollama")), "gpt-oss-20b");
    assert_eq!(own, ModelInfo::undescribed(ModelRef::new("gate", "gpt-oss-20b")), "only the server knows");
    let newer = described(Some(vendor("openai")), "gpt-99");
    assert_eq!(newer.context, 128_000);
}

#[test]
fn a_variant_is_no_part_of_a_description() {
    let chosen = ModelRef { variant: Some("high".to_owned()), ..ModelRef::new("p", "gpt-5.5") };
    for info in [
        Catalogue::embedded().describe(Some(vendor("openai")), chosen.clone()),
        Catalogue::embedded().describe(None, ModelRef { model_id: "x".to_owned(), ..chosen }),
    ] {
        assert_eq!(info.model.variant, None);
    }
}

#[test]
fn only_what_an_agent_can_use_is_kept() {
    let catalogue = trimmed(
        "openai",
        &[
            model("good", json!({})),
            model("no-tools", json!({"tool_call": false})),
            model("old", json!({"status": "deprecated"})),
            model("beta", json!({"status": "beta"})),
            model("speaks", json!({"modalities": {"input": ["text"], "output": ["text", "audio"]}})),
            model("draws", json!({"modalities": {"input": ["text"], "output": ["image"]}})),
            model("hears", json!({"modalities": {"input": ["audio"], "output": ["text"]}})),
            model("mute", json!({"modalities": {"input": ["text"], "output": []}})),
            model("narrow", json!({"limit": {"context": 8_000, "output": 4_000}})),
            model("silent", json!({"limit": {"context": 200_000, "output": 0}})),
            model("x:free", json!({})),
            model("gpt-computer-use", json!({})),
            model("strange", json!({"limit": "much"})),
            json!({"id": "empty"}),
        ],
    );
    assert_eq!(ids(&catalogue, "openai"), ["beta", "good"]);
}

#[test]
fn the_preferred_come_first_and_then_the_newest() {
    let catalogue = trimmed(
        "openai",
        &[
            model("a", json!({"release_date": "2024-05-01"})),
            model("b", json!({"release_date": "2026-05"})),
            model("c", json!({"release_date": "2026-05-02"})),
            model("d", json!({"release_date": "2026-05-02"})),
            model("gpt-5.6", json!({"release_date": "2020-01-01"})),
            model("d-2026-05-02", json!({"release_date": "2026-05-02"})),
            model("e-2026-05-02", json!({"release_date": "2019-05-02"})),
        ],
    );
    assert_eq!(ids(&catalogue, "openai"), ["gpt-5.6", "c", "d", "b", "a", "e-2026-05-02"]);
}

#[test]
fn a_long_list_is_cut_and_families_are_kept() {
    let many: Vec<Value> = (0..100).map(|nth| model(&format!("qwen/m{nth:02}"), json!({}))).collect();
    assert_eq!(ids(&trimmed("openrouter", &many), "openrouter").len(), 60);
    let mixed =
        [model("thedrummer/x", json!({})), model("qwen/x", json!({})), model("~qwen/latest", json!({}))];
    assert_eq!(ids(&trimmed("openrouter", &mixed), "openrouter"), ["qwen/x"]);
}

#[test]
fn levels_are_those_the_wire_can_ask_for() {
    use ThoughtLevel::{High, Low, Max, Medium, Off};
    let effort = |words: &[&str]| json!({"type": "effort", "values": words});
    let levels = |provider: &str, id: &str, options: Value| {
        let catalogue = trimmed(provider, &[model("qwen/x", json!({"reasoning_options": options}))]);
        catalogue.models(vendor(id), id)[0].thought_levels.clone()
    };
    assert_eq!(levels("openai", "openai", json!([])), []);
    assert_eq!(
        levels("openai", "openai", json!([effort(&["minimal", "low", "medium", "high"])])),
        [Low, Medium, High]
    );
    assert_eq!(
        levels("openai", "openai", json!([effort(&["none", "low", "xhigh", "max"])])),
        [Off, Low, Max]
    );
    assert_eq!(levels("openai", "openai", json!([effort(&["high", "max"])])), [High], "its word is xhigh");
    assert_eq!(
        levels("deepseek", "deepseek", json!([{"type": "toggle"}, effort(&["high", "max"])])),
        [Off, High, Max]
    );
    assert_eq!(
        levels("openrouter", "openrouter", json!([effort(&["high", "max"])])),
        [High, Max],
        "it translates"
    );
    assert_eq!(levels("groq", "groq", json!([effort(&["none", "default"])])), [Off]);
    let budget = |min: i64| json!([{"type": "budget_tokens", "min": min}]);
    assert_eq!(levels("anthropic", "anthropic", budget(1024)), ThoughtLevel::ALL);
    assert_eq!(levels("google", "gemini", budget(128)), [Low, Medium, High, Max]);
    assert_eq!(levels("google", "gemini", budget(0)), ThoughtLevel::ALL);
    let both = json!([effort(&["low", "medium", "high"]), {"type": "budget_tokens", "min": 1024}]);
    assert_eq!(levels("anthropic", "anthropic", both), [Off, Low, Medium, High]);
    assert_eq!(levels("openai", "openai", json!([{"type": "effort", "values": [null, "low"]}])), [Low]);
}

#[test]
fn sizes_and_prices_are_what_they_mean() {
    let catalogue = trimmed(
        "openai",
        &[
            model("a", json!({"limit": {"context": 400_000, "input": 272_000, "output": 128_000}})),
            model(
                "b",
                json!({"limit": {"context": 500_000, "output": 500_000}, "cost": {"input": 2, "output": 6}}),
            ),
            model("c", json!({"limit": {"context": 64_000, "output": 64_000}})),
            model("d", json!({"limit": {"context": 200_000, "output": 64_000}})),
            model("e", json!({"limit": {"context": 1_000_000, "output": 384_000}})),
        ],
    );
    let models = catalogue.models(vendor("openai"), "openai");
    let sizes: Vec<(u64, u64)> = models.iter().map(|info| (info.context, info.max_output)).collect();
    assert_eq!(
        sizes,
        [(272_000, 128_000), (500_000, 32_768), (64_000, 16_000), (200_000, 50_000), (1_000_000, 131_072)]
    );
    assert_eq!(models[0].price, None);
    assert_eq!(models[1].price, Some(Price { input: 2.0, output: 6.0, cache_read: 2.0, cache_write: 2.0 }));
}

#[test]
fn a_newer_file_is_read_by_an_older_program() {
    let text = r#"{"origin":"x","version":9,"vendors":[{"id":"openai","colour":"red","models":[
        {"id":"a","name":"A","context":64000,"max_output":8000,"takes":"images smell","thought":"low endless",
         "price":[1,2,0.1,1],"shape":{}}]}]}"#;
    let models = Catalogue::parse(text).unwrap().models(vendor("openai"), "openai");
    assert_eq!(models[0].thought_levels, [ThoughtLevel::Low]);
    assert!(models[0].images && !models[0].pdf);
}

#[test]
fn a_vendor_that_a_refreshed_file_lacks_is_looked_up_in_ours() {
    let catalogue = trimmed("openai", &[model("only", json!({}))]);
    assert_eq!(ids(&catalogue, "openai"), ["only"]);
    assert_eq!(ids(&catalogue, "anthropic"), ids(Catalogue::embedded(), "anthropic"));
}

#[test]
fn what_is_no_catalogue_is_refused_in_words() {
    let words = |result: Result<Catalogue, CatalogueError>| result.unwrap_err().to_string();
    assert_eq!(words(Catalogue::parse("<html>")), "is not JSON: expected value at line 1 column 1");
    assert_eq!(words(Catalogue::parse("{\"vendors\":[]}")), "contains no model of any vendor attache knows");
    assert_eq!(
        words(Catalogue::parse("{}")),
        "is not a catalogue: missing field `vendors` at line 1 column 2"
    );
    let wrong = "{\"vendors\":[{\"id\":\"openai\",\"models\":[\n{\"id\":\"a\",\"name\":\"A\",\"context\":\"much\"}]}]}";
    assert_eq!(
        words(Catalogue::parse(wrong)),
        "is not a catalogue: invalid type: string \"much\", expected u64 at line 2 column 37"
    );
    assert_eq!(
        words(Catalogue::from_models_dev("[]")),
        "is not a catalogue: invalid type: sequence, expected a map at line 1 column 0"
    );
    assert_eq!(
        words(Catalogue::from_models_dev("{\"openai\":")),
        "is not JSON: EOF while parsing a value at line 1 column 10"
    );
    assert_eq!(
        words(Catalogue::from_models_dev("{\"openai\":3}")),
        "contains no model of any vendor attache knows"
    );
}

proptest! {
    #[test]
    fn any_text_is_a_catalogue_or_an_error(text in "\\PC{0,200}") {
        prop_assert!(Catalogue::parse(&text).is_err());
        prop_assert!(Catalogue::from_models_dev(&text).is_err());
    }

    #[test]
    fn a_damaged_file_never_panics(at in 0..EMBEDDED.len(), byte in any::<u8>()) {
        let mut bytes = EMBEDDED.as_bytes().to_vec();
        bytes[at] = byte;
        if let Ok(text) = std::str::from_utf8(&bytes) && let Ok(catalogue) = Catalogue::parse(text) {
            prop_assert_eq!(Catalogue::parse(&catalogue.to_json()).unwrap(), catalogue);
        }
    }
}
