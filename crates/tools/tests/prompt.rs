//! What the tools cost in every request.

#[test]
fn descriptions_and_schemas_are_small() {
    let mut total = 0;
    for tool in attache_tools::builtin(attache_tools::Equipment::bare()) {
        let spec = tool.spec();
        let schema = spec.parameters.to_string();
        assert!(spec.description.len() > 80, "{} says too little", spec.id);
        for noise in ["$schema", "title", "null", "format"] {
            assert!(!schema.contains(&format!("\"{noise}\"")), "{noise} in {schema}");
        }
        println!("{} {} {schema}\n  {}", spec.id, spec.description.len() + schema.len(), spec.description);
        total += spec.description.len() + schema.len();
    }
    assert!(total <= 6_000, "{total} bytes");
}

#[test]
fn the_family_is_complete() {
    let ids: Vec<_> =
        attache_tools::builtin(attache_tools::Equipment::bare()).iter().map(|tool| tool.spec().id).collect();
    assert_eq!(
        ids,
        [
            "read",
            "view_image",
            "write",
            "edit",
            "apply_patch",
            "glob",
            "grep",
            "bash",
            "todo",
            "web_fetch",
            "question"
        ]
    );
}

#[test]
fn a_search_is_offered_only_where_somebody_searches() {
    use attache_tools::{Equipment, SearchEndpoint, SearchProvider};
    let mut equipment = Equipment::bare();
    assert!(attache_tools::builtin(equipment.clone()).iter().all(|tool| tool.spec().id != "web_search"));
    equipment.web_search =
        Some(SearchEndpoint::new(SearchProvider::Searxng, "https://search.test", None).unwrap());
    let tools = attache_tools::builtin(equipment);
    let spec = tools.iter().find(|tool| tool.spec().id == "web_search").unwrap().spec();
    let bytes = spec.description.len() + spec.parameters.to_string().len();
    assert!(bytes <= 450, "{bytes} bytes");
}
