//! Manifests as people write them: understood, refused with the line, or taken with a note.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::ports::tool::{Effect, ToolKind, ToolSpec};
use crate::watchdog::Rule;

fn beside(name: &str) -> Result<String, String> {
    match name {
        "schema.json" => Ok(r#"{"type":"object"}"#.to_owned()),
        "broken.json" => Ok("{".to_owned()),
        _ => Err("there is no such file".to_owned()),
    }
}

fn read_as(dialect: ManifestDialect, text: &str) -> Result<ReadManifest, FrontMatterError> {
    parse(&AgentFile { stem: "reviewer", text, dialect, beside: &beside }, &Agents::builtin())
}

fn own(fields: &str) -> Result<ReadManifest, FrontMatterError> {
    read_as(
        ManifestDialect::Own,
        &format!("---\nmode: all\ndescription: Reviews.\n{fields}\n---\nReview it.\n"),
    )
}

fn agent(fields: &str) -> Agent {
    let read = own(fields).unwrap_or_else(|error| panic!("{fields}: {error}"));
    assert_eq!(read.notes, [], "{fields}");
    read.agent
}

fn claude(fields: &str) -> ReadManifest {
    read_as(ManifestDialect::Claude, &format!("---\ndescription: Reviews.\n{fields}\n---\nReview it.\n"))
        .unwrap()
}

fn spec(name: &str, kind: ToolKind, effect: Effect) -> ToolSpec {
    ToolSpec {
        id: name.into(),
        description: "".into(),
        parameters: json!({}).into(),
        kind,
        effect,
        hidden: false,
    }
}

fn offered(agent: &Agent) -> Vec<&'static str> {
    let all = [
        ("read", ToolKind::Read, Effect::ReadOnly),
        ("edit", ToolKind::Edit, Effect::Mutates),
        ("bash", ToolKind::Execute, Effect::Mutates),
        ("todo", ToolKind::Other, Effect::SessionOnly),
        ("plan_exit", ToolKind::SwitchMode, Effect::SessionOnly),
        ("github_list", ToolKind::Other, Effect::Mutates),
        ("github_delete", ToolKind::Other, Effect::Mutates),
    ];
    let offered =
        all.into_iter().filter(|(name, kind, effect)| agent.is_offered(&spec(name, *kind, *effect)));
    offered.map(|(name, _, _)| name).collect()
}

fn rules(agent: &Agent) -> Vec<String> {
    let shown = |own: &ManifestRule| format!("{:?} {} {}", own.firmness, own.rule, own.rule.action.as_str());
    agent.permissions.iter().map(shown).collect()
}

#[test]
fn a_small_manifest_has_everything_else_by_default() {
    let agent = agent("");
    assert_eq!((&*agent.id, &*agent.name, agent.mode), ("reviewer", "Reviewer", AgentMode::All));
    assert_eq!((&*agent.description, &*agent.system_prompt), ("Reviews.", "Review it."));
    assert_eq!((agent.commands, agent.permissions.len()), (Commands::Any, 0));
    assert_eq!((agent.model, agent.thought, agent.max_steps), (None, None, None));
    assert_eq!((agent.transcript, agent.when_done), (Transcript::OwnSession, WhenDone::TellOnly));
}

#[test]
fn every_field_says_what_it_means() {
    let all = agent(
        "id: critic\nname: The critic\nmodel: acme/large/7\neffort: high\nmax_steps: 12\ninspectable: false\nwake: true\n\
         when_refused: \"here: say so\"",
    );
    assert_eq!((&*all.id, &*all.name), ("critic", "The critic"));
    assert_eq!(all.model, Some(ModelRef::new("acme", "large/7")));
    assert_eq!((all.thought, all.max_steps), (Some(ThoughtLevel::High), Some(12)));
    assert_eq!((all.transcript, all.when_done), (Transcript::Nested, WhenDone::WakeParent));
    assert_eq!(all.instead.as_deref(), Some("here: say so"));
    let schema = json!({ "type": "object", "required": ["verdict"] });
    for written in [
        "output_schema: {\"type\": \"object\", \"required\": [\"verdict\"]}",
        "output_schema:\n  type: object\n  required: [verdict]",
        "output_schema: |\n  nothing",
    ] {
        match own(written) {
            Ok(read) => assert_eq!(read.agent.output_schema.as_deref(), Some(&schema), "{written}"),
            Err(error) => assert!(written.ends_with("nothing") && error.line == 4, "{written}: {error}"),
        }
    }
    let beside = agent("output_schema: schema.json");
    assert_eq!(beside.output_schema.as_deref(), Some(&json!({ "type": "object" })));
}

#[test]
fn tools_are_a_list_a_text_or_a_map_of_names_and_patterns() {
    let cases: [(&str, &[&str]); 10] = [
        ("", &["read", "edit", "bash", "todo", "github_list", "github_delete"]),
        ("tools: [read, bash]", &["read", "bash"]),
        ("tools: read, bash", &["read", "bash"]),
        ("tools:\n  - read\n  - \"github_*\"\n  - \"!github_delete\"", &["read", "github_list"]),
        ("tools: [\"!bash\", \"!github_*\"]", &["read", "edit", "todo"]),
        ("tools:\n  bash: false\n  \"github_*\": false", &["read", "edit", "todo"]),
        ("tools: {\"*\": false, read: true}", &["read"]),
        ("tools: []", &[]),
        (
            "tools: [\"*\", plan_exit]",
            &["read", "edit", "bash", "todo", "plan_exit", "github_list", "github_delete"],
        ),
        ("read_only: true", &["read", "bash", "todo"]),
    ];
    for (fields, expected) in cases {
        let fields = fields.replace("\"github_*\": false", "github_list: false\n  github_delete: false");
        assert_eq!(offered(&agent(&fields)), expected, "{fields}");
    }
}

#[test]
fn rules_are_pinned_and_written_as_those_of_the_configuration() {
    let written = "permissions:\n  - permission: bash\n    pattern: \"cargo test *\"\n    action: allow\n  - {permission: edit, action: deny}";
    assert_eq!(rules(&agent(written)), ["Pinned bash cargo test * allow", "Pinned edit * deny"]);
    assert_eq!(rules(&agent("read_only: true")), ["Pinned edit * deny"]);
}

#[test]
fn what_is_wrong_is_refused_with_its_line() {
    let cases = [
        ("id: a b", 4, "can't be typed"),
        ("id: a:b", 4, "can't be typed"),
        ("model: large", 4, "PROVIDER/NAME"),
        ("effort: loud", 4, "off, low, medium, high, max"),
        ("max_steps: 0", 4, "at least 1"),
        ("max_steps: many", 4, "at least 1"),
        ("wake: maybe", 4, "true or false"),
        ("read_only: [true]", 4, "must be a text"),
        ("tools:\n  read: 1", 5, "`tools` must be names"),
        ("tools:\n  - [x]", 5, "`tools` must be names"),
        ("permissions: all", 4, "must be a list"),
        ("permissions:\n  - permission: edti\n    action: deny", 5, "did you mean `edit`?"),
        ("permissions:\n  - permission: edit\n    action: maybe", 6, "allow, ask or deny"),
        ("permissions:\n  - permission: edit\n    acton: deny", 6, "did you mean `action`?"),
        ("permissions:\n  - pattern: x\n    action: deny", 5, "`permission` is missing"),
        ("permissions:\n  - permission: todo\n    pattern: x\n    action: deny", 6, "`pattern` must be `*`"),
        ("output_schema: none.json", 4, "there is no such file"),
        ("output_schema: broken.json", 4, "broken.json"),
        ("output_schema: [1]", 4, "JSON Schema"),
        ("mode: x", 4, "twice"),
    ];
    for (fields, line, problem) in cases {
        let error = own(fields).unwrap_err();
        assert!(error.line == line && error.problem.contains(problem), "{fields}: {error}");
    }
    let whole = [
        ("no front matter", 1, "`mode` is missing"),
        ("---\nmode: subagnt\ndescription: x\n---\nx", 2, "did you mean `subagent`?"),
        ("---\nmode: hidden\ndescription: x\n---\nx", 2, "primary, subagent or all"),
        ("---\nmode: primary\n---\nx", 1, "`description` is missing"),
        (
            "---\nmode: all\ndescripton: d\n---\nx",
            3,
            "`description` is missing: what the agent is for; is `descripton`",
        ),
        ("---\ndescription: d\nmoed: all\n---\nx", 3, "is `moed` a slip of it?"),
        ("---\nmode: primary\ndescription: x\n---\n\n", 5, "the prompt is missing"),
        ("---\nmode: primary\n", 1, "no end"),
    ];
    for (text, line, problem) in whole {
        let error = read_as(ManifestDialect::Own, text).unwrap_err();
        assert!(error.line == line && error.problem.contains(problem), "{text}: {error}");
    }
}

#[test]
fn what_is_not_known_is_told_and_does_no_harm() {
    let read =
        own("colour: red\ntool: [read]\ntools: [Read, reed, my_server_tool, \"Bash(git diff:*)\"]").unwrap();
    let told: Vec<String> = read.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "line 4: there is no key `colour`",
            "line 5: there is no key `tool` (did you mean `tools`?)",
            "line 6: there is no tool `reed` (did you mean `read`?)",
            "line 6: `Bash(git diff:*)`: only the name counts; rules say which calls pass",
        ]
    );
    assert_eq!(offered(&read.agent), ["read", "bash"]);
}

#[test]
fn agents_of_another_program_are_subagents_with_its_words() {
    let read = claude(
        "name: code-reviewer\ntools: Read, Grep, Bash, mcp__github__list, mcp__other\nmodel: sonnet\ncolor: red\nmaxTurns: 9\n\
         disallowedTools: Bash",
    );
    assert_eq!(read.notes, []);
    let agent = &read.agent;
    assert_eq!((&*agent.id, agent.mode, agent.max_steps), ("code-reviewer", AgentMode::Subagent, Some(9)));
    assert_eq!((&agent.model, offered(agent)), (&None, vec!["read", "github_list"]));
    assert!(agent.is_offered(&spec("other_x", ToolKind::Other, Effect::Mutates)));
    assert_eq!(offered(&claude("permissionMode: plan").agent), ["read", "bash", "todo"]);
    assert_eq!(offered(&claude("permissionMode: bypassPermissions").agent).len(), 6, "nothing is loosened");
    assert!(rules(&claude("permissionMode: bypassPermissions").agent).is_empty());
    let told: Vec<String> = claude("hoks: x\neffort: xhigh").notes.iter().map(ToString::to_string).collect();
    assert!(
        told[0].starts_with("line 3: there is no key `hoks`") && told[1].starts_with("line 4: `effort`"),
        "{told:?}"
    );
}

#[test]
fn a_file_changes_a_built_in_agent_only_where_it_says_so() {
    let read = |text: &str| read_as(ManifestDialect::Own, text).unwrap().agent;
    let built_in = Agents::builtin();
    let build = built_in.get("build").unwrap();
    let changed = read("---\nid: build\nmodel: acme/large\n---\n");
    assert_eq!(changed, Agent { model: Some(ModelRef::new("acme", "large")), ..build.clone() });
    // A file can't allow what the built-in agent forbids.
    let plan = read(
        "---\nid: plan\nread_only: false\ntools: [\"*\"]\npermissions: [{permission: edit, action: allow}]\n---\nPlan better.",
    );
    assert_eq!((&*plan.system_prompt, plan.commands), ("Plan better.", Commands::OnlyReading));
    assert_eq!(rules(&plan), ["Pinned edit * deny", "Pinned edit * allow"]);
    assert_eq!(offered(&plan), ["read", "bash", "todo"]);
    for (text, line) in [
        ("---\nid: build\nmode: subagent\n---\n", 3),
        ("---\nid: title\nmode: primary\n---\n", 3),
        ("---\nid: explore\nmode: primary\n---\n", 3),
    ] {
        let error = read_as(ManifestDialect::Own, text).unwrap_err();
        assert!(error.line == line && error.problem.contains("built in"), "{text}: {error}");
    }
    let taken = "---\nname: plan\ndescription: x\n---\nx";
    assert!(read_as(ManifestDialect::Claude, taken).unwrap_err().problem.contains("built in"));
    assert_eq!(read("---\nid: title\n---\nName it.").mode, AgentMode::Hidden);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever a file holds, it is an agent or refused with one of its own lines.
    #[test]
    fn no_manifest_panics(
        lines in proptest::collection::vec(
            "(id|name|mode|description|model|effort|tools|permissions|read_only|max_steps|output_schema|wake|disallowedTools|  - permission|    action|x)?: ?\
             (all|primary|a/b|high|true|7|\\[read, \"!b\\*\"|\\{a: 1\\}|\\{|\\[|- x|edit|deny|schema.json|\\||é|\"|')?[ \\]\\}]?",
            0..12,
        ),
        body in "(\n---\n)?.{0,10}",
        dialect in prop_oneof![Just(ManifestDialect::Own), Just(ManifestDialect::Claude), Just(ManifestDialect::BuiltIn)],
    ) {
        let text = format!("---\n{}\n---\n{body}", lines.join("\n"));
        match read_as(dialect, &text) {
            Ok(read) => {
                prop_assert!(!read.agent.id.is_empty() && !read.agent.system_prompt.is_empty());
                let all = text.lines().count();
                prop_assert!(read.notes.iter().all(|note| (1..=all).contains(&note.line)));
                prop_assert!(read.agent.permissions.iter().all(|own| Rule::is_known_permission(&own.rule.permission)));
            }
            Err(error) => prop_assert!((1..=text.lines().count()).contains(&error.line), "{error}\n{text}"),
        }
    }

    #[test]
    fn no_text_at_all_panics(text in any::<String>()) {
        drop(read_as(ManifestDialect::Own, &text));
        drop(read_as(ManifestDialect::Claude, &format!("---\n{text}\n---\nx")));
    }
}
