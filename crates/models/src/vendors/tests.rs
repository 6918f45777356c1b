//! Every entry of the table is usable as it is, so a new one needs no code.

use std::collections::HashSet;

use super::*;
use crate::endpoint::{BaseUrl, Endpoint};
use crate::secret::Secret;

fn endpoint(vendor: &Vendor, base_url: &str) -> Endpoint {
    Endpoint {
        dialect: vendor.dialect,
        base_url: BaseUrl::parse(base_url).unwrap(),
        auth: vendor.auth,
        key: Secret::new("sk-1"),
        compatibility: vendor.compatibility,
        key_hint: String::new(),
    }
}

fn address(endpoint: &Endpoint, model_id: &str) -> String {
    endpoint.base_url.join(&endpoint.dialect.path(model_id)).to_string()
}

#[test]
fn the_order_is_the_order_of_preference() {
    let ids: Vec<&str> = VENDORS.iter().map(|vendor| vendor.id).collect();
    assert_eq!(
        ids.join(" "),
        "anthropic openai gemini openrouter azure deepseek xai groq mistral together fireworks ollama llamacpp vllm \
         lmstudio"
    );
}

#[test]
fn each_vendor_is_spoken_to_at_its_own_address() {
    let addresses = VENDORS
        .iter()
        .filter(|vendor| !vendor.base_url.is_empty())
        .map(|vendor| (vendor.id, address(&endpoint(vendor, vendor.base_url), "m")));
    let expected = [
        ("anthropic", "https://api.anthropic.com/v1/messages"),
        ("openai", "https://api.openai.com/v1/responses"),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse"),
        ("openrouter", "https://openrouter.ai/api/v1/chat/completions"),
        ("deepseek", "https://api.deepseek.com/chat/completions"),
        ("xai", "https://api.x.ai/v1/responses"),
        ("groq", "https://api.groq.com/openai/v1/chat/completions"),
        ("mistral", "https://api.mistral.ai/v1/chat/completions"),
        ("together", "https://api.together.xyz/v1/chat/completions"),
        ("fireworks", "https://api.fireworks.ai/inference/v1/chat/completions"),
        ("ollama", "http://127.0.0.1:11434/v1/chat/completions"),
        ("llamacpp", "http://127.0.0.1:8080/v1/chat/completions"),
        ("vllm", "http://127.0.0.1:8000/v1/chat/completions"),
        ("lmstudio", "http://127.0.0.1:1234/v1/chat/completions"),
    ];
    assert_eq!(addresses.collect::<Vec<_>>(), expected.map(|(id, url)| (id, url.to_owned())));
}

#[test]
fn an_entry_says_all_a_user_needs() {
    for vendor in VENDORS {
        let own = vendor.key == KeyNeed::Optional;
        assert!(
            vendor.id.bytes().all(|byte| byte.is_ascii_lowercase()),
            "{}: stands in a variable",
            vendor.id
        );
        assert!(BaseUrl::parse(vendor.key_page).is_ok(), "{}: no page to go to", vendor.id);
        assert!(!vendor.key_variables.is_empty(), "{}: a key can't be given", vendor.id);
        assert_eq!(own, vendor.shelf.models_dev.is_none(), "{}: has a catalogue or is asked", vendor.id);
        if own {
            assert!(BaseUrl::parse(vendor.base_url).unwrap().is_loopback(), "{}", vendor.id);
        } else if !vendor.base_url.is_empty() {
            assert!(
                vendor.base_url.starts_with("https://"),
                "{}: a key would travel in the clear",
                vendor.id
            );
        }
    }
}

#[test]
fn no_two_vendors_share_a_name_or_a_variable() {
    let mut seen = HashSet::new();
    for vendor in VENDORS {
        let variables = vendor.key_variables.iter().map(|variable| (*variable).to_owned());
        for name in variables.chain([vendor.id.to_owned(), vendor.base_url_variable()]) {
            assert!(seen.insert(name.clone()), "{name} stands twice");
        }
    }
    assert!(seen.contains("LLAMACPP_BASE_URL") && seen.contains("GEMINI_BASE_URL"));
}

#[test]
fn a_vendor_is_found_by_its_exact_id() {
    assert_eq!(Vendor::find("gemini").map(|vendor| vendor.name), Some("Google Gemini"));
    assert!(Vendor::find("Gemini").is_none());
    assert!(Vendor::find("google").is_none());
}

#[test]
fn a_slip_is_understood_and_another_word_is_not() {
    let meant = |id: &str| Vendor::nearest(id).map(|vendor| vendor.id);
    for (written, id) in [
        ("antropic", "anthropic"),
        ("openia", "openai"),
        ("Google", "gemini"),
        ("llama.cpp", "llamacpp"),
        ("LM Studio", "lmstudio"),
        ("togetherai", "together"),
        ("fireworks-ai", "fireworks"),
        ("xAI", "xai"),
        ("mistrall", "mistral"),
    ] {
        assert_eq!(meant(written), Some(id), "{written}");
    }
    for other in ["gateway", "local", "bedrock", "", "x", "my-server"] {
        assert_eq!(meant(other), None, "{other}");
    }
}

#[test]
fn a_gateway_is_a_dialect_and_an_address() {
    let anthropic = endpoint(Vendor::find("anthropic").unwrap(), "https://gate.example/bedrock/anthropic");
    assert_eq!(address(&anthropic, "m"), "https://gate.example/bedrock/anthropic/v1/messages");
    assert_eq!(anthropic.headers()["x-api-key"], "sk-1");
    assert_eq!(anthropic.headers()["anthropic-version"], "2023-06-01");

    let bearer = Endpoint { auth: AuthHeader::Bearer, ..anthropic };
    assert_eq!(bearer.headers()["authorization"], "Bearer sk-1");
    assert!(!bearer.headers().contains_key("x-api-key"));

    let bedrock = Endpoint {
        dialect: Dialect::OpenAiChat,
        base_url: BaseUrl::parse("https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1").unwrap(),
        ..bearer
    };
    assert_eq!(
        address(&bedrock, "openai.gpt-oss-120b-1:0"),
        "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1/chat/completions"
    );
    assert!(!bedrock.headers().contains_key("anthropic-version"));
}

#[test]
fn the_page_for_users_says_what_the_table_says() {
    let page = include_str!("../../../../docs/models.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = VENDORS.iter().map(row).collect();
    assert_eq!(rows, expected);
}

fn row(vendor: &Vendor) -> String {
    let Vendor { id, name, key_page, .. } = vendor;
    let variables: Vec<String> =
        vendor.key_variables.iter().map(|variable| format!("`{variable}`")).collect();
    let address = match vendor.base_url {
        "" => "your own".to_owned(),
        base_url => format!("`{base_url}`"),
    };
    let small = vendor.small_model.map_or("the first line".to_owned(), |model| format!("`{model}`"));
    let (variables, dialect) = (variables.join(", "), vendor.dialect.as_str());
    format!("| `{id}` | [{name}]({key_page}) | {variables} | {address} | `{dialect}` | {small} |")
}

#[test]
fn azure_takes_the_address_of_its_user() {
    let azure = Vendor::find("azure").unwrap();
    let endpoint = endpoint(azure, "https://mine.openai.azure.com/openai/v1");
    assert_eq!(address(&endpoint, "m"), "https://mine.openai.azure.com/openai/v1/responses");
    assert_eq!(endpoint.headers()["api-key"], "sk-1");
}
