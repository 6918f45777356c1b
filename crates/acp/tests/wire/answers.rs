//! Answers and requests of ours, held to the schema.

use std::sync::Arc;

use attache_acp::from_wire::{self, ClientRequest, LoginTerminals};
use attache_acp::limits::LINE_BYTES;
use attache_acp::to_wire::{
    CompactionUpdates, EDIT_ARGUMENTS, Logins, Notices, ThoughtUpdates, WireView, argument_form,
    choice_request, config_options, failed_start_response, fits_options, has_form, initialize_response,
    mode_request, modes, permission_request, session_info,
};
use attache_acp::{CommandLine, Login, LoginWay};
use attache_core::choices::{Chosen, CurrentChoices};
use attache_core::ids::{CallId, MessageId, SessionId};
use attache_core::ports::client::{
    About, Ask, CallArguments, Choice, ModeProposal, Permission, Question, Selection, WhenAsked,
};
use attache_core::ports::model::ThoughtLevel;
use attache_core::ports::store::{ModelRef, SessionRow, UsageTotals};
use attache_core::ports::tool::{Presentation, Shown, ToolKind};
use attache_core::watchdog::Approval;
use attache_testkit::schema::Validator;
use attache_testkit::snake_case::leaked_keys;
use serde_json::{Value, json};

use crate::{choices, two_modes};

fn checked_response(method: &str, result: &Value) {
    assert_eq!(Validator::shared().response(method, result), Ok(()), "{result}");
    assert_eq!(leaked_keys(result), Vec::<String>::new());
}

fn initialize(params: &Value) -> from_wire::Initialize {
    let raw = serde_json::value::to_raw_value(params).unwrap();
    match from_wire::request("initialize", Some(raw)).unwrap() {
        ClientRequest::Initialize(initialize) => *initialize,
        other => panic!("{other:?}"),
    }
}

#[test]
fn initialize_advertises_what_is_honoured() {
    for client in [0, 1, 2, 65_535] {
        let asked = initialize(&json!({ "protocolVersion": client }));
        let response = initialize_response(asked.version, &choices(), logins(None, &asked), "0.1.0").unwrap();
        checked_response("initialize", &response);
        assert_eq!(response["protocolVersion"], 1);
        let capabilities = &response["agentCapabilities"];
        assert_eq!(capabilities["loadSession"], true);
        assert_eq!(
            capabilities["promptCapabilities"],
            json!({"image": true, "audio": false, "embeddedContext": true})
        );
        assert_eq!(capabilities["mcpCapabilities"], json!({ "http": true, "sse": true }));
        let sessions =
            ["list", "delete", "resume", "close", "additionalDirectories", "fork", "runtimeContext"];
        for name in sessions {
            assert_eq!(capabilities["sessionCapabilities"][name], json!({}), "{name}");
        }
        assert_eq!(capabilities["sessionCapabilities"].as_object().unwrap().len(), sessions.len());
        assert_eq!(response["agentInfo"]["name"], "attache");
        assert_eq!((&capabilities["auth"], &response["authMethods"]), (&json!({}), &json!([])));
    }
}

fn logins<'a>(ways: Option<&'a [Login]>, asked: &from_wire::Initialize) -> Logins<'a> {
    Logins { ways, terminals: LoginTerminals::of(&asked.capabilities) }
}

#[test]
fn logins_are_advertised_as_methods() {
    let login = |id: &str, description: &str, way: LoginWay| Login {
        id: id.into(),
        name: id.to_uppercase(),
        description: description.into(),
        way,
    };
    let command = CommandLine {
        program: "/bin/agent".into(),
        arguments: vec!["acp".into(), "--login".into()],
        environment: vec![("HOME_OF_IT".into(), "/h".into())],
    };
    let ways = [
        login("key", "Set ACME_API_KEY", LoginWay::Agent),
        login("tty", "", LoginWay::Terminal { arguments: vec!["--login".into()], command }),
    ];
    let methods = |capabilities: Value| {
        let asked = initialize(&json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
        let mut response =
            initialize_response(asked.version, &choices(), logins(Some(&ways), &asked), "0.1.0").unwrap();
        checked_response("initialize", &response);
        assert_eq!(response["agentCapabilities"]["auth"], json!({ "logout": {} }));
        assert_eq!(
            response["authMethods"][0],
            json!({ "id": "key", "name": "KEY", "description": "Set ACME_API_KEY" })
        );
        response["authMethods"][1].take()
    };
    let typed = json!({ "type": "terminal", "id": "tty", "name": "TTY", "args": ["--login"] });
    let meta = json!({ "terminal-auth": {
        "label": "TTY", "command": "/bin/agent", "args": ["acp", "--login"], "env": { "HOME_OF_IT": "/h" },
    } });
    let with_meta = |mut method: Value| {
        method["_meta"] = meta.clone();
        method
    };
    assert_eq!(methods(json!({ "auth": { "terminal": true } })), typed);
    assert_eq!(
        methods(json!({ "auth": { "terminal": true }, "_meta": { "terminal-auth": true } })),
        with_meta(typed)
    );
    assert_eq!(
        methods(json!({ "_meta": { "terminal-auth": true } })),
        with_meta(json!({ "id": "tty", "name": "TTY" }))
    );
}

#[test]
fn a_failed_start_honours_nothing() {
    let asked = initialize(&json!({ "protocolVersion": 1 }));
    let response = failed_start_response(asked.version, "0.1.0").unwrap();
    checked_response("initialize", &response);
    assert_eq!(
        (&response["protocolVersion"], &response["agentInfo"]["name"]),
        (&json!(1), &json!("attache"))
    );
    assert_eq!(response["agentCapabilities"]["loadSession"], false);
    assert_eq!(response["authMethods"], json!([]));
}

#[test]
fn the_view_follows_what_the_client_asked_for() {
    let view = |capabilities: Value| {
        let asked = initialize(&json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
        let view = WireView::new(CurrentChoices::new(choices()), &asked.capabilities, ThoughtUpdates::Show);
        (view.notices, view.compaction)
    };
    assert_eq!(view(json!({})), (Notices::Unwanted, CompactionUpdates::Unwanted));
    assert_eq!(view(json!({ "session": { "notices": {} } })), (Notices::Wanted, CompactionUpdates::Unwanted));
    assert_eq!(
        view(json!({ "session": { "compaction": {} } })),
        (Notices::Unwanted, CompactionUpdates::Wanted)
    );
    assert_eq!(view(json!({ "session": 5 })), (Notices::Unwanted, CompactionUpdates::Unwanted));
    assert_eq!(view(json!("nonsense")), (Notices::Unwanted, CompactionUpdates::Unwanted));
}

#[test]
fn modes_and_options_are_complete() {
    let model = Some(ModelRef::new("other", "unlisted/x"));
    let thought_levels = vec![ThoughtLevel::Off, ThoughtLevel::Max];
    let thought = Some(ThoughtLevel::Max);
    let (agent, approval) = ("plan".into(), Approval::Edits);
    let options = Vec::new();
    let chosen = Chosen { agent, modes: two_modes(), model, thought, thought_levels, approval, options };
    let options = json!(config_options(&choices(), &chosen));
    let response = json!({ "sessionId": "ses_1", "modes": modes(&chosen), "configOptions": options });
    checked_response("session/new", &response);
    checked_response("session/set_config_option", &json!({ "configOptions": options }));
    assert_eq!(response["modes"]["currentModeId"], "plan");
    assert_eq!(response["modes"]["availableModes"][0]["id"], "build");
    assert_eq!(
        (&options[1]["currentValue"], &options[1]["category"]),
        (&json!("other/unlisted/x"), &json!("model"))
    );
    let groups = &options[1]["options"];
    let values = |group: &Value| -> Vec<String> {
        let values = group["options"].as_array().unwrap().iter();
        values.map(|option| option["value"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(values(&groups[0]), ["acme/small", "acme/large"]);
    assert_eq!(values(&groups[1]), ["other/x", "other/unlisted/x"]);
    assert_eq!(groups.as_array().unwrap().len(), 2);
    assert_eq!(
        (&options[2]["id"], &options[2]["category"]),
        (&json!("thought_level"), &json!("thought_level"))
    );
    assert_eq!(
        (values(&options[2]), &options[2]["currentValue"]),
        (vec!["default".into(), "off".into(), "max".into()], &json!("max"))
    );
    let approval = &options[3];
    assert_eq!((&approval["id"], &approval["category"]), (&json!("approval"), &json!("_approval")));
    assert_eq!(values(approval), ["ask", "edits", "all"]);
    assert_eq!(approval["currentValue"], "edits");
    let plain = Chosen { model: None, thought: None, thought_levels: Vec::new(), ..chosen };
    let options = json!(config_options(&choices(), &plain));
    checked_response("session/set_config_option", &json!({ "configOptions": options }));
    assert_eq!(options.as_array().unwrap().len(), 2);
}

#[test]
fn a_session_is_listed_with_its_title_and_time() {
    let mut row = SessionRow {
        id: SessionId::new("ses_1"),
        agent: "build".into(),
        workspace_root: "/w".into(),
        model: None,
        parent_id: None,
        parent_message_id: None,
        permissions: json!([]),
        metadata: Default::default(),
        totals: UsageTotals::default(),
        created_at: 0,
        updated_at: 951_782_400_000,
        archived_at: None,
    };
    assert_eq!(
        json!(session_info(&row)),
        json!({ "sessionId": "ses_1", "cwd": "/w", "updatedAt": "2000-02-29T00:00:00.000Z" })
    );
    row.metadata.set_title("A walk");
    row.metadata.set_additional_directories(&["/x".into()]);
    let listed = json!(session_info(&row));
    assert_eq!((&listed["title"], &listed["additionalDirectories"]), (&json!("A walk"), &json!(["/x"])));
    checked_response("session/list", &json!({ "sessions": [listed], "nextCursor": "x" }));
}

const RULE: &str = "cargo test";

fn permission() -> Permission {
    let why = "the command may change something".to_owned();
    Permission { why, rule_name: Some(RULE.into()), ..Permission::default() }
}

fn ask(title: &str, kind: ToolKind, content: Vec<Shown>, input: Value) -> Ask {
    Ask {
        session_id: SessionId::new("ses_1"),
        message_id: MessageId::new("msg_1"),
        call_id: CallId::new("c1"),
        approval_id: "apr_1".into(),
        tool_name: "bash".into(),
        input,
        presentation: Presentation {
            title: title.into(),
            kind: Some(kind),
            content,
            ..Presentation::default()
        },
        about: About::Permission(permission()),
        when: WhenAsked::CallAsked,
        expected: Arc::default(),
    }
}

fn checked_request(ask: &Ask) -> Value {
    let request = permission_request(ask, &permission()).unwrap();
    assert_eq!(Validator::shared().request("session/request_permission", &request), Ok(()), "{request}");
    assert_eq!(leaked_keys(&request), Vec::<String>::new());
    request
}

#[test]
fn other_arguments_are_offered_last_and_their_form_has_a_field_of_each_kind() {
    let input =
        json!({ "to": "x", "count": 3, "share": 0.5, "force": false, "tags": ["a"], "big": u64::MAX });
    let ask = ask("deploy", ToolKind::Other, Vec::new(), input.clone());
    let about = Permission { arguments: CallArguments::Editable, ..permission() };
    let request = permission_request(&ask, &about).unwrap();
    assert_eq!(Validator::shared().request("session/request_permission", &request), Ok(()), "{request}");
    let last = request["options"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["optionId"], &last["kind"]), (&json!(EDIT_ARGUMENTS), &json!("allow_once")));
    let form = argument_form(&ask, &Default::default(), &[]).unwrap();
    assert_eq!(Validator::shared().request("elicitation/create", &form), Ok(()), "{form}");
    let fields = &form["requestedSchema"]["properties"];
    for (name, kind, default) in [
        ("to", "string", json!("x")),
        ("count", "integer", json!(3)),
        ("share", "number", json!(0.5)),
        ("force", "boolean", json!(false)),
        ("tags", "string", json!("[\"a\"]")),
        ("big", "string", json!("18446744073709551615")),
    ] {
        assert_eq!((&fields[name]["type"], &fields[name]["default"]), (&json!(kind), &default), "{name}");
    }
    let typed = json!({ "tags": "[" });
    let again = argument_form(&ask, typed.as_object().unwrap(), &["tags".to_owned()]).unwrap();
    assert!(again["message"].as_str().unwrap().ends_with("This is no JSON: `tags`."), "{again}");
    assert_eq!(again["requestedSchema"]["properties"]["tags"]["default"], "[");
    // What is no object has no fields, and nobody edits a book in a form.
    assert!(has_form(&input) && !has_form(&json!([])) && !has_form(&json!({})));
    assert!(!has_form(&json!({ "text": "x".repeat(20_000) })));
}

#[test]
fn another_mode_is_proposed_with_the_plan_and_two_answers() {
    let plan = vec![Shown::Text { text: "# Plan\n\n1. Do it\u{202e}.".into() }];
    let ask = ask("Leave plan mode?", ToolKind::SwitchMode, plan, json!({ "plan": "x" }));
    let proposal = ModeProposal { agent: "build".into(), name: "Build".into() };
    let request = mode_request(&ask, &proposal).unwrap();
    assert_eq!(Validator::shared().request("session/request_permission", &request), Ok(()), "{request}");
    assert_eq!(leaked_keys(&request), Vec::<String>::new());
    let options: Vec<_> = request["options"].as_array().unwrap().iter().collect();
    let answers: Vec<_> =
        options.iter().map(|option| (&option["optionId"], &option["kind"], &option["name"])).collect();
    assert_eq!(
        answers,
        [
            (&json!("allow_once"), &json!("allow_once"), &json!("Yes, go on in Build mode")),
            (&json!("reject_once"), &json!("reject_once"), &json!("No, not yet")),
        ]
    );
    assert_eq!(request["toolCall"]["kind"], "switch_mode");
    assert_eq!(request["toolCall"]["content"][0]["content"]["text"], "# Plan\n\n1. Do it\\u{202e}.");
}

#[test]
fn a_permission_has_four_answers_and_the_whole_command() {
    let command = format!("cargo test{}\u{202e}; rm\n-rf ~", " ".repeat(5000));
    let request = checked_request(&ask(&command, ToolKind::Execute, vec![], json!({ "command": command })));
    let options: Vec<_> =
        request["options"].as_array().unwrap().iter().map(|option| &option["optionId"]).collect();
    assert_eq!(options, ["allow_once", "allow_always", "reject_once", "reject_always"]);
    assert_eq!(request["options"][1]["name"], "Always allow: cargo test");
    assert_eq!(request["toolCall"]["title"], "cargo test⟨5000 blanks⟩\\u{202e}; rm⏎-rf ~");
    let shown = request["toolCall"]["content"].as_array().unwrap();
    assert_eq!(shown.len(), 1, "the command is shown once: {shown:?}");
    assert_eq!(shown[0]["content"]["text"], "Asks because: the command may change something");
    assert_eq!(request["toolCall"]["rawInput"]["command"], json!(command));
    assert_eq!(request["toolCall"]["status"], "pending");
}

#[test]
fn a_command_is_never_cut_however_long() {
    let command = format!("echo {}; tail", "x".repeat(3 * LINE_BYTES));
    let request = checked_request(&ask(&command, ToolKind::Execute, vec![], json!({ "command": command })));
    assert_eq!(request["toolCall"]["title"], json!(command));
}

#[test]
fn the_diff_of_a_huge_file_is_cut_and_marked() {
    let new_text = "line\n".repeat(100_000);
    let diff = Shown::Diff { path: "/p/a".into(), old_text: None, new_text: new_text.clone() };
    let request =
        checked_request(&ask("Write /p/a", ToolKind::Edit, vec![diff], json!({ "content": new_text })));
    assert!(request.to_string().len() <= LINE_BYTES);
    assert_eq!(request["toolCall"]["content"][0]["oldText"], Value::Null);
    assert_eq!(request["toolCall"]["_meta"]["attache"]["cut"]["fields"], json!(["rawInput", "newText"]));
}

#[test]
fn the_choices_of_a_question_are_options_of_distinct_kinds_and_listed_in_the_call() {
    let choice = |label: &str, description: Option<&str>| Choice {
        label: label.into(),
        description: description.map(str::to_owned),
    };
    let question = |choices: Vec<Choice>, selection| Question {
        text: "Which database?".into(),
        header: None,
        choices,
        selection,
    };
    let two = question(vec![choice("SQLite", Some("a file")), choice("PostgreSQL", None)], Selection::One);
    let about = About::Questions(Arc::new([two.clone()]));
    let ask = Ask { about, ..ask("Which database?", ToolKind::Other, Vec::new(), json!({})) };
    let request = choice_request(&ask, &two, 0).unwrap();
    assert_eq!(Validator::shared().request("session/request_permission", &request), Ok(()), "{request}");
    let kinds: Vec<_> = request["options"].as_array().unwrap().iter().map(|option| &option["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
    assert_eq!(
        request["toolCall"]["content"][0]["content"]["text"],
        "Which database?\n\n1. **SQLite**: a file\n2. **PostgreSQL**"
    );
    assert!(fits_options(&two));
    let many: Vec<_> = ["a", "b", "c", "d", "e"].into_iter().map(|label| choice(label, None)).collect();
    let four = question(many[..4].to_vec(), Selection::One);
    assert!(fits_options(&four));
    let offered = |first: usize| {
        let request = choice_request(&ask, &four, first).unwrap();
        let options = request["options"].as_array().unwrap().iter();
        options.map(|option| option["optionId"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(offered(0), ["choice_1", "more", "none"]);
    assert_eq!(offered(1), ["choice_2", "more", "none"]);
    assert_eq!(offered(2), ["choice_3", "choice_4", "none"]);
    for other in [
        question(many, Selection::One),
        question(Vec::new(), Selection::One),
        question(two.choices.clone(), Selection::Several),
    ] {
        assert!(!fits_options(&other), "{other:?}");
    }
}

#[test]
fn models_of_one_provider_need_no_group() {
    let chosen = |model: &str| Chosen {
        agent: "build".into(),
        modes: two_modes(),
        model: Some(ModelRef::new("acme", model)),
        thought: None,
        thought_levels: Vec::new(),
        approval: Approval::Ask,
        options: Vec::new(),
    };
    let mut one = choices();
    one.models = one.models.iter().filter(|info| info.model.provider_id == "acme").cloned().collect();
    let options = json!(config_options(&one, &chosen("large")));
    checked_response("session/set_config_option", &json!({ "configOptions": options }));
    let values: Vec<_> =
        options[1]["options"].as_array().unwrap().iter().map(|option| &option["value"]).collect();
    assert!(values.contains(&&json!("acme/large")), "{values:?}");
}
