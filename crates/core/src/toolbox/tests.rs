//! What a session is offered, and what is added later.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::agents::{Agents, DEFAULT_AGENT};
use crate::ports::BoxFuture;
use crate::ports::mcp::{BegunArgument, ServerPrompt, ServerStatus, WrittenPrompt};
use crate::ports::store::ModelRef;
use crate::ports::tool::{Effect, Site, ToolKind, ToolOutcome, ToolPlan, ToolRuntime};

#[derive(Debug)]
struct Named(ToolSpec);

impl Tool for Named {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn plan(&self, _: &Value, _: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        Box::pin(std::future::ready(Err("plans nothing".to_owned())))
    }

    fn run(&self, _: Value, _: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(std::future::pending())
    }
}

/// A source whose tools can be replaced, like a server's.
#[derive(Debug, Default)]
struct Changing(Mutex<Vec<Arc<dyn Tool>>>);

impl ToolSource for Changing {
    fn tools(&self) -> Arc<[Arc<dyn Tool>]> {
        self.0.lock().unwrap().clone().into()
    }
}

impl SessionServers for Changing {
    fn status(&self) -> Vec<ServerStatus> {
        Vec::new()
    }

    fn settled(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn prompts(&self) -> Arc<[ServerPrompt]> {
        Arc::new([])
    }

    fn write_out(
        &self,
        _: &str,
        _: Vec<(String, String)>,
    ) -> BoxFuture<'static, Result<WrittenPrompt, String>> {
        Box::pin(std::future::ready(Err("it has no prompts".to_owned())))
    }

    fn suggestions(
        &self,
        _: &str,
        _: Vec<(String, String)>,
        _: BegunArgument<'_>,
    ) -> BoxFuture<'static, Vec<String>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    fn resource_news(&self) -> Option<String> {
        None
    }

    fn log_in(&self, _name: &str, _client: Option<Arc<dyn crate::ports::Delegate>>) -> Result<(), String> {
        unreachable!()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn tools(names: &[&str], description: &str) -> Vec<Arc<dyn Tool>> {
    let spec = |name: &&str| ToolSpec {
        id: (*name).into(),
        description: description.into(),
        parameters: json!({ "type": "object" }).into(),
        kind: ToolKind::Other,
        effect: Effect::ReadOnly,
        hidden: false,
    };
    names.iter().map(|name| Arc::new(Named(spec(name))) as Arc<dyn Tool>).collect()
}

fn offered(toolbox: &Toolbox) -> OfferedTools {
    let agents = Agents::builtin();
    let model =
        ModelInfo::undescribed(ModelRef { provider_id: "p".into(), model_id: "m".into(), variant: None });
    toolbox.offer(
        agents.get(DEFAULT_AGENT).unwrap(),
        &[],
        &model,
        Offering { people: People::Present, has_skills: true },
    )
}

fn names(toolbox: &Toolbox) -> Vec<String> {
    offered(toolbox).specs().iter().map(|spec| spec.id.to_string()).collect()
}

fn with_server(builtin: &[&str]) -> (Toolbox, Arc<Changing>) {
    let server = Arc::new(Changing::default());
    let builtin = Arc::new(Changing(Mutex::new(tools(builtin, "built in"))));
    (Toolbox::new(&ToolSources::new(vec![builtin, server.clone()])), server)
}

#[test]
fn what_a_source_gains_is_appended_and_what_it_loses_keeps_its_place() {
    let (mut toolbox, server) = with_server(&["read", "bash"]);
    assert_eq!(toolbox.look(), Looked::Changed);
    assert_eq!(toolbox.look(), Looked::Same);
    *server.0.lock().unwrap() = tools(&["search", "fetch"], "served");
    assert_eq!(toolbox.look(), Looked::Changed);
    assert_eq!(names(&toolbox), ["read", "bash", "search", "fetch"]);
    *server.0.lock().unwrap() = tools(&["upload", "fetch"], "served");
    assert_eq!(toolbox.look(), Looked::Changed);
    assert_eq!(names(&toolbox), ["read", "bash", "search", "fetch", "upload"]);
}

#[test]
fn no_source_replaces_a_tool_of_another() {
    let (mut toolbox, server) = with_server(&["read"]);
    *server.0.lock().unwrap() = tools(&["read"], "served");
    toolbox.look();
    assert_eq!(&*offered(&toolbox).specs()[0].description, "built in");
    assert_eq!(names(&toolbox), ["read"]);
}

#[test]
fn a_turn_under_way_keeps_the_tools_it_began_with() {
    let (mut toolbox, server) = with_server(&["read"]);
    toolbox.look();
    let turn = offered(&toolbox);
    *server.0.lock().unwrap() = tools(&["search"], "served");
    toolbox.look();
    assert!(turn.find("search").is_none());
    assert!(offered(&toolbox).find("search").is_some());
}

#[test]
fn a_name_written_another_way_is_found_while_only_one_is_like_it() {
    let (mut toolbox, server) = with_server(&["web_fetch"]);
    toolbox.look();
    for name in ["WebFetch", "functions.web_fetch", "tools.WebFetch", "default_api.web_fetch"] {
        assert!(offered(&toolbox).find(name).is_some(), "{name}");
    }
    assert!(offered(&toolbox).find("other.web_fetch").is_none());
    *server.0.lock().unwrap() = tools(&["web-fetch"], "served");
    toolbox.look();
    assert!(offered(&toolbox).find("WebFetch").is_none());
    assert!(offered(&toolbox).find("web-fetch").is_some());
}

#[test]
fn tools_of_servers_are_found_by_the_names_that_other_agents_give_them() {
    let (mut toolbox, _) = with_server(&["read", "github_create_issue", "todo"]);
    toolbox.look();
    let found = |name: &str| offered(&toolbox).find(name).map(|tool| tool.spec().id.to_string());
    for name in ["mcp__github__create_issue", "mcp_github_create_issue", "mcp__github__createIssue"] {
        assert_eq!(found(name).as_deref(), Some("github_create_issue"), "{name}");
    }
    assert_eq!(found("mcp__github__close_issue"), None);
    assert_eq!(offered(&toolbox).unknown("todos"), "there is no tool `todos`: use `todo`");
}

#[test]
fn a_tool_of_another_agent_is_answered_with_the_one_that_does_the_same() {
    let (mut toolbox, _) = with_server(&["read", "bash", "edit"]);
    toolbox.look();
    let told = |name: &str| offered(&toolbox).unknown(name);
    assert_eq!(told("run_terminal_cmd"), "there is no tool `run_terminal_cmd`: use `bash`");
    assert!(
        told("str_replace_editor").contains(": use `edit` (`read` shows a file"),
        "{}",
        told("str_replace_editor")
    );
    assert!(told("functions.bash").ends_with(": use `bash`"), "{}", told("functions.bash"));
    assert!(told("ExitPlanMode").contains(": only the user switches the mode"), "{}", told("ExitPlanMode"));
    // A tool that is not offered is not suggested.
    assert_eq!(told("TodoWrite"), "there is no tool `TodoWrite`; available: read, bash, edit");
    assert_eq!(told("fly"), "there is no tool `fly`; available: read, bash, edit");
}

/// A tool that is listed only if there are few like it, or once it was found.
#[derive(Debug)]
struct Searchable(ToolSpec);

impl Tool for Searchable {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn is_searchable(&self) -> bool {
        true
    }

    fn plan(&self, _: &Value, _: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        Box::pin(std::future::ready(Err("plans nothing".to_owned())))
    }

    fn run(&self, _: Value, _: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(std::future::pending())
    }
}

fn searchable(range: std::ops::Range<usize>) -> Vec<Arc<dyn Tool>> {
    let spec = |number: usize| tools(&[&format!("s_{number}")], "of a server")[0].spec().clone();
    range.map(|number| Arc::new(Searchable(spec(number))) as Arc<dyn Tool>).collect()
}

#[test]
fn few_tools_of_servers_are_listed_and_stay_when_many_come() {
    let source = Arc::new(Changing::default());
    let built_in: Vec<Arc<dyn Tool>> = tools(&["read", "write"], "built in");
    let mut toolbox = Toolbox::new(&built_in.into());
    toolbox.set_own(source.clone());
    *source.0.lock().unwrap() = searchable(0..3);
    toolbox.look();
    assert_eq!(names(&toolbox), ["read", "write", "s_0", "s_1", "s_2"]);
    *source.0.lock().unwrap() = searchable(0..40);
    toolbox.look();
    // Tools that the model knows keep their places; the rest has to be searched for.
    assert_eq!(names(&toolbox), ["read", "write", "s_0", "s_1", "s_2", "tool_search"]);
    toolbox.set_active(vec!["s_30".into(), "s_7".into()]);
    assert_eq!(names(&toolbox), ["read", "write", "s_0", "s_1", "s_2", "tool_search", "s_30", "s_7"]);
    assert_eq!(toolbox.active().len(), 6);
}

#[test]
fn what_a_search_finds_is_there_in_the_same_turn() {
    let source = Arc::new(Changing::default());
    *source.0.lock().unwrap() = searchable(0..40);
    let mut toolbox = Toolbox::new(&Vec::new().into());
    toolbox.set_own(source);
    toolbox.look();
    let turn = offered(&toolbox);
    assert_eq!(turn.specs().len(), 1, "only the search");
    assert!(turn.find("s_20").is_some(), "who knows its name may call it all the same");
    toolbox.set_active(vec!["s_20".into()]);
    assert_eq!(&*turn.specs()[1].id, "s_20");
}
