//! What the tools cost in every request.

use std::sync::Arc;

use attache_core::ports::Tool;
use attache_core::tool_names::BUILTIN_TOOLS;
use attache_tools::{Equipment, SearchEndpoint, SearchProvider};

/// The ten that the contract bounds together.
const TEN: [&str; 10] =
    ["read", "write", "edit", "glob", "grep", "bash", "todo", "question", "web_search", "web_fetch"];

/// Every tool at once, as where a search service is configured.
fn everything() -> Vec<Arc<dyn Tool>> {
    let mut equipment = Equipment::bare();
    equipment.web_search =
        Some(SearchEndpoint::new(SearchProvider::Searxng, "https://search.test", None).unwrap());
    attache_tools::builtin(equipment)
}

#[test]
fn descriptions_and_schemas_are_small() {
    let (mut of_ten, mut of_all, mut seen) = (0, 0, 0);
    for tool in everything() {
        let spec = tool.spec();
        let schema = spec.parameters.to_string();
        assert!(spec.description.len() > 80, "{} says too little", spec.id);
        for noise in ["$schema", "title", "null", "format"] {
            assert!(!schema.contains(&format!("\"{noise}\"")), "{noise} in {schema}");
        }
        let bytes = spec.description.len() + schema.len();
        println!("{} {bytes} {schema}\n  {}", spec.id, spec.description);
        of_all += bytes;
        if TEN.contains(&&*spec.id) {
            (of_ten, seen) = (of_ten + bytes, seen + 1);
        }
    }
    println!("the ten {of_ten}, all {of_all}");
    assert_eq!(seen, TEN.len());
    assert!(of_ten <= 7_000, "the ten of the contract: {of_ten} bytes");
    // All thirteen of the contract have 9,000: this leaves room for those to come.
    assert!(of_all <= 8_000, "{of_all} bytes");
}

/// One list has the names: whatever of it has a file here is offered, and nothing else is.
#[test]
fn the_family_is_complete() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tools");
    let exists = |name: &&str| folder.join(format!("{name}.rs")).is_file();
    let mut known: Vec<String> = BUILTIN_TOOLS.into_iter().filter(exists).map(str::to_owned).collect();
    let mut offered: Vec<String> = everything().iter().map(|tool| tool.spec().id.to_string()).collect();
    known.sort_unstable();
    offered.sort_unstable();
    assert_eq!(offered, known);
    assert!(known.len() >= 14, "{known:?}");
}

#[test]
fn a_search_is_offered_only_where_somebody_searches() {
    let offers = |tools: &[Arc<dyn Tool>]| tools.iter().any(|tool| &*tool.spec().id == "web_search");
    assert!(!offers(&attache_tools::builtin(Equipment::bare())));
    assert!(offers(&everything()));
}
