//! Makes a file of ours of one of another agent's, and says what of it means nothing here. Pure.

use std::fmt::Write as _;

use attache_core::agents::{Agents, FoundAgent, ManifestDialect};
use attache_core::command_templates::CommandTemplate;
use attache_core::front_matter::{FrontField, FrontMatter, FrontValue};
use serde_json::Value;
use toml_edit::DocumentMut;

use super::found::FileForm;
use super::opencode_rules::{TheirRule, kept};

/// A text of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConvertedFile {
    pub(super) text: String,
    /// In words: what it had that is not in the text, or means nothing in it.
    pub(super) left_out: Vec<String>,
}

/// The error says why it can't be one of ours.
pub(super) fn converted(form: FileForm, text: &str) -> Result<ConvertedFile, String> {
    let made = match form {
        FileForm::Prompt => prompt(text)?,
        FileForm::GeminiCommand => gemini_command(text)?,
        FileForm::GooseRecipe => goose_recipe(text)?,
        FileForm::OpencodeAgent => return opencode_agent(text),
        FileForm::Skill => ConvertedFile { text: text.to_owned(), left_out: Vec::new() },
    };
    match form {
        FileForm::Skill | FileForm::OpencodeAgent => {}
        FileForm::Prompt | FileForm::GeminiCommand | FileForm::GooseRecipe => {
            CommandTemplate::parse("name", &made.text).map_err(|error| error.to_string())?;
        }
    }
    Ok(made)
}

/// A command of ours as text.
fn command(description: &str, hint: &str, body: &str, mut left_out: Vec<String>) -> ConvertedFile {
    let mut text = String::new();
    if !description.is_empty() || !hint.is_empty() {
        text.push_str("---\n");
        for (key, value) in [("description", description), ("argument-hint", hint)] {
            if !value.is_empty() {
                // Writing to a String can't fail.
                writeln!(text, "{key}: {}", quoted(value)).unwrap_or_default();
            }
        }
        text.push_str("---\n");
    }
    if ["!`", "!{"].iter().any(|shell| body.contains(shell)) {
        left_out.push("commands of the shell in it stay text: nothing in a command is run".to_owned());
    }
    if body.contains("@{") {
        left_out.push("`@{…}` stays text: it is no file that is read".to_owned());
    }
    text.push_str(body.trim());
    text.push('\n');
    ConvertedFile { text, left_out }
}

/// On one line, with what would end it written out.
fn quoted(value: &str) -> String {
    let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
    Value::String(line).to_string()
}

/// Claude Code, Codex, opencode: Markdown with the same places as ours.
fn prompt(text: &str) -> Result<ConvertedFile, String> {
    let front = FrontMatter::parse(text).map_err(|error| error.to_string())?;
    let said = |key: &str| front.field(key).map(in_words).unwrap_or_default();
    let (description, hint) = (said("description"), said("argument-hint"));
    let mut left_out: Vec<String> = front
        .fields()
        .iter()
        .filter(|field| !["description", "argument-hint"].contains(&field.key.as_str()))
        .map(|field| format!("`{}`", field.key))
        .collect();
    if let Some(name) = named_place(front.body) {
        left_out.push(format!("`${name}` stays text: places are `$1` to `$9` and `$ARGUMENTS`"));
    }
    Ok(command(&description, &hint, front.body, left_out))
}

/// A text, or the items of a list behind each other.
fn in_words(field: &FrontField) -> String {
    match &field.value {
        FrontValue::Text(text) => text.clone(),
        FrontValue::List(items) => items.join(" "),
        FrontValue::Nested(_) => String::new(),
    }
}

/// The first place with a name, as Codex has them: `$FILE`.
fn named_place(body: &str) -> Option<&str> {
    body.split('$').skip(1).find_map(|behind| {
        let end = behind.find(|c: char| !(c.is_ascii_uppercase() || c == '_')).unwrap_or(behind.len());
        Some(&behind[..end]).filter(|name| name.len() > 1 && *name != "ARGUMENTS")
    })
}

fn gemini_command(text: &str) -> Result<ConvertedFile, String> {
    let document = text.parse::<DocumentMut>().map_err(|error| error.message().to_owned())?;
    let said = |key: &str| document.get(key).and_then(|item| item.as_str()).unwrap_or_default();
    if said("prompt").trim().is_empty() {
        return Err("it has no `prompt`".to_owned());
    }
    let body = said("prompt").replace("{{args}}", "$ARGUMENTS");
    Ok(command(said("description"), "", &body, Vec::new()))
}

/// Its parameters become the words behind the name, in their order.
fn goose_recipe(text: &str) -> Result<ConvertedFile, String> {
    let recipe = recipe(text)?;
    let said = |key: &str| recipe.get(key).and_then(Value::as_str).unwrap_or_default().trim();
    let parameters: Vec<&str> = recipe
        .get("parameters")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|parameter| parameter.get("key").and_then(Value::as_str))
        .collect();
    let mut body = [said("instructions"), said("prompt")]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n");
    if body.is_empty() {
        return Err("it has neither `instructions` nor a `prompt`".to_owned());
    }
    if parameters.len() > 9 {
        return Err(format!("it has {} parameters, and a command nine words at most", parameters.len()));
    }
    for (place, key) in parameters.iter().enumerate() {
        for written in [format!("{{{{ {key} }}}}"), format!("{{{{{key}}}}}")] {
            body = body.replace(&written, &format!("${}", place + 1));
        }
    }
    let mut left_out: Vec<String> =
        ["extensions", "settings", "sub_recipes", "response", "retry", "activities"]
            .into_iter()
            .filter(|key| recipe.get(*key).is_some_and(|value| !value.is_null()))
            .map(|key| format!("`{key}`"))
            .collect();
    if body.contains("{{") || body.contains("{%") {
        left_out.push("`{{…}}` that is no parameter stays text".to_owned());
    }
    let description = [said("description"), said("title")].into_iter().find(|text| !text.is_empty());
    Ok(command(description.unwrap_or_default(), &parameters.join(" "), &body, left_out))
}

/// The keys at its top; those that can't be read are left out.
fn recipe(text: &str) -> Result<serde_json::Map<String, Value>, String> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| error.to_string());
    }
    let text = text.trim_start_matches("---\n");
    let block = format!("---\n{}\n---\n", text.trim_end());
    let front = FrontMatter::parse(&block).map_err(|error| error.to_string())?;
    let mut recipe = serde_json::Map::new();
    for field in front.fields() {
        let value = front.node(&field.key).map_err(|error| error.to_string())?;
        recipe.insert(field.key.clone(), value.map(|node| node.to_json()).unwrap_or_default());
    }
    Ok(recipe)
}

/// What opencode calls tools that are called otherwise here.
const TOOLS: [(&str, &str); 7] = [
    ("todowrite", "todo"),
    ("todoread", "todo"),
    ("webfetch", "web_fetch"),
    ("websearch", "web_search"),
    ("list", "glob"),
    ("patch", "apply_patch"),
    ("multiedit", "edit"),
];

/// What takes away one of these takes away editing there, whatever tool does it.
const EDITING: [&str; 5] = ["write", "edit", "patch", "multiedit", "apply_patch"];

fn our_tool(name: &str) -> &str {
    TOOLS.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| *ours)
}

/// Front matter like ours, with other names of tools and another form of rules. What narrows it must not be
/// lost: an agent whose rules can't be read is none of ours.
fn opencode_agent(text: &str) -> Result<ConvertedFile, String> {
    let front = FrontMatter::parse(text).map_err(|error| error.to_string())?;
    let said = |key: &str| front.text(key).map_err(|error| error.to_string());
    if said("disable")? == Some("true") {
        return Err("it is switched off there (`disable: true`)".to_owned());
    }
    let mut made = String::from("---\n");
    let mode = said("mode")?.unwrap_or("all");
    let description = said("description")?.unwrap_or("An agent of opencode.");
    writeln!(made, "mode: {mode}\ndescription: {}", quoted(description)).unwrap_or_default();
    if let Some(steps) = said("maxSteps")?.or(said("steps")?) {
        writeln!(made, "max_steps: {steps}").unwrap_or_default();
    }
    let tools = front.field("tools").map(entries).transpose()?.unwrap_or_default();
    let permissions = front.field("permission").map(entries).transpose()?.unwrap_or_default();
    made.push_str(&tool_line(&tools)?);
    let mut rules = rules(&permissions)?;
    if tools.iter().any(takes_editing) {
        rules.push(TheirRule { permission: "edit".into(), pattern: "*".into(), action: "deny".into() });
    }
    made.push_str(&rule_lines(&kept(rules)?));
    made.push_str("---\n");
    made.push_str(front.body.trim());
    made.push('\n');
    let known = ["mode", "description", "maxSteps", "steps", "tools", "permission", "name", "disable"];
    let left_out: Vec<String> = front
        .fields()
        .iter()
        .filter(|field| !known.contains(&field.key.as_str()))
        .map(|field| format!("`{}`", field.key))
        .collect();
    judged(&made)?;
    Ok(ConvertedFile { text: made, left_out })
}

/// Ours decide by the last pattern that fits: what stands for all comes first, what takes away next.
fn tool_line(tools: &[KeyBelow]) -> Result<String, String> {
    let (mut allowed, mut denied) = (Vec::new(), Vec::new());
    for KeyBelow { key, value, .. } in tools {
        match value.as_str() {
            "true" => allowed.push(our_tool(key)),
            "false" => denied.push(our_tool(key)),
            _ => return Err(format!("`{key}` of `tools` is neither true nor false")),
        }
    }
    // They have all tools that nobody took away.
    if denied.is_empty() {
        return Ok(String::new());
    }
    if tools.iter().any(takes_editing) {
        denied.extend(["write", "edit", "apply_patch"]);
    }
    allowed.retain(|name| !denied.contains(name));
    let allowed = allowed.into_iter().map(|name| (!name.contains('*'), 1, name.to_owned()));
    let denied = denied.into_iter().map(|name| (!name.contains('*'), 0, format!("!{name}")));
    let mut patterns: Vec<(bool, u8, String)> = allowed.chain(denied).collect();
    patterns.sort();
    patterns.dedup();
    let patterns: Vec<String> = patterns.iter().map(|(.., pattern)| quoted(pattern)).collect();
    Ok(format!("tools: [{}]\n", patterns.join(", ")))
}

/// By its name, or by a pattern that is not for all tools.
fn takes_editing(tool: &KeyBelow) -> bool {
    let fits = |name: &&str| match tool.key.split_once('*') {
        Some((beginning, _)) => tool.key != "*" && name.starts_with(beginning),
        None => tool.key == *name,
    };
    tool.value == "false" && EDITING.iter().any(fits)
}

/// `edit: deny`, or `bash:` with patterns.
fn rules(permissions: &[KeyBelow]) -> Result<Vec<TheirRule>, String> {
    let mut rules = Vec::new();
    for KeyBelow { key: permission, value, below } in permissions {
        let all = vec![("*".to_owned(), value.clone())];
        for (pattern, action) in if below.is_empty() { &all } else { below } {
            if !["allow", "ask", "deny"].contains(&action.as_str()) {
                return Err(format!("`{action}` of its rule for `{permission}` is no action"));
            }
            let permission = our_tool(permission).to_owned();
            rules.push(TheirRule { permission, pattern: pattern.clone(), action: action.clone() });
        }
    }
    Ok(rules)
}

fn rule_lines(rules: &[TheirRule]) -> String {
    let mut lines = String::new();
    for (at, TheirRule { permission, pattern, action }) in rules.iter().enumerate() {
        let (head, pattern) = (if at == 0 { "permissions:\n" } else { "" }, quoted(pattern));
        writeln!(lines, "{head}  - {{permission: {permission}, pattern: {pattern}, action: {action}}}")
            .unwrap_or_default();
    }
    lines
}

/// A key below a field, whatever signs it has; it has a value, or pairs below it.
#[derive(Debug)]
struct KeyBelow {
    key: String,
    value: String,
    below: Vec<(String, String)>,
}

/// Two levels of keys, as `tools` and `permission` have them.
fn entries(field: &FrontField) -> Result<Vec<KeyBelow>, String> {
    let bad = || format!("line {}: `{}` can't be read", field.line, field.key);
    let FrontValue::Nested(text) = &field.value else { return Err(bad()) };
    let mut entries: Vec<KeyBelow> = Vec::new();
    let mut first = None;
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with('#')) {
        let indent = line.len() - line.trim_start().len();
        let (key, value) = pair(line.trim()).ok_or_else(bad)?;
        match entries.last_mut() {
            _ if indent == *first.get_or_insert(indent) => {
                entries.push(KeyBelow { key, value, below: Vec::new() });
            }
            Some(above) if above.value.is_empty() => above.below.push((key, value)),
            Some(_) | None => return Err(bad()),
        }
    }
    match entries.iter().any(|entry| entry.value.is_empty() == entry.below.is_empty()) {
        true => Err(bad()),
        false => Ok(entries),
    }
}

/// `key: value`, with quotes around either.
fn pair(line: &str) -> Option<(String, String)> {
    let (key, value) = match line.chars().next()? {
        quote @ ('"' | '\'') => {
            let (key, behind) = line[1..].split_once(quote)?;
            (key, behind.strip_prefix(':')?)
        }
        _ => line.split_once(':')?,
    };
    let value = value.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    Some((key.trim().to_owned(), value.to_owned()))
}

/// Read as a session would read it.
fn judged(text: &str) -> Result<(), String> {
    let (path, dialect) = ("agent.md".into(), ManifestDialect::Own);
    let none = |_: &FoundAgent, name: &str| Err(format!("there is no {name}"));
    let file = FoundAgent { path, text: text.to_owned(), dialect };
    let loaded = Agents::builtin().with_files(&[file], &none);
    match [loaded.left_out, loaded.notes].concat().first() {
        Some(problem) => Err(problem.trim_start_matches("agent.md: ").to_owned()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(form: FileForm, text: &str) -> (String, Vec<String>) {
        let ConvertedFile { text, left_out } = converted(form, text).unwrap();
        (text, left_out)
    }

    #[test]
    fn a_prompt_keeps_its_places_and_what_means_nothing_here_is_named() {
        let text = "---\ndescription: Fix: an issue\nargument-hint: [issue] [branch]\nallowed-tools: Bash(gh:*)\nmodel: opus\n---\n\
                    Look: !`git status`\nFix $1 in $FILE, $ARGUMENTS\n";
        let (text, left_out) = made(FileForm::Prompt, text);
        assert_eq!(
            text,
            "---\ndescription: \"Fix: an issue\"\nargument-hint: \"[issue] [branch]\"\n---\n\
             Look: !`git status`\nFix $1 in $FILE, $ARGUMENTS\n"
        );
        assert_eq!(left_out[..2], ["`allowed-tools`", "`model`"]);
        assert!(left_out[2].contains("$FILE") && left_out[3].contains("nothing in a command is run"));
        assert_eq!(made(FileForm::Prompt, "Say hi.\n"), ("Say hi.\n".to_owned(), Vec::new()));
        assert!(converted(FileForm::Prompt, "---\ndescription: d\n").unwrap_err().contains("has no end"));
        assert!(converted(FileForm::Prompt, "---\ndescription: d\n---\n").unwrap_err().contains("no text"));
    }

    #[test]
    fn a_command_of_gemini_and_a_recipe_of_goose_become_commands() {
        let gemini = "description = \"Plan it\"\nprompt = \"\"\"\nPlan {{args}} with @{notes.md}\n\"\"\"\n";
        let (text, left_out) = made(FileForm::GeminiCommand, gemini);
        assert_eq!(text, "---\ndescription: \"Plan it\"\n---\nPlan $ARGUMENTS with @{notes.md}\n");
        assert_eq!(left_out.len(), 1);
        assert!(converted(FileForm::GeminiCommand, "description = 1").unwrap_err().contains("`prompt`"));
        let goose = "version: 1.0.0\ntitle: Release\ndescription: Makes a release\ninstructions: |\n  You make releases.\n\n  Be careful.\n\
                     prompt: \"Release {{ version }} of {{name}}\"\nparameters:\n  - key: version\n    input_type: string\n    requirement: required\n    \
                     description: which\n  - key: name\n    input_type: string\n    requirement: required\n    description: of what\n\
                     extensions:\n  - type: builtin\n    name: developer\n";
        let (text, left_out) = made(FileForm::GooseRecipe, goose);
        assert_eq!(
            text,
            "---\ndescription: \"Makes a release\"\nargument-hint: \"version name\"\n---\n\
             You make releases.\n\nBe careful.\n\nRelease $1 of $2\n"
        );
        assert_eq!(left_out, ["`extensions`"]);
        let json = "{\"title\": \"T\", \"prompt\": \"Do {{ x }}\", \"parameters\": [{\"key\": \"x\"}]}";
        assert!(made(FileForm::GooseRecipe, json).0.ends_with("Do $1\n"));
        assert!(converted(FileForm::GooseRecipe, "title: T\n").unwrap_err().contains("neither"));
    }

    #[test]
    fn an_agent_of_opencode_keeps_what_narrows_it() {
        let text = "---\ndescription: Reviews\nmode: subagent\ntemperature: 0.1\nmodel: a/b\ntools:\n  write: false\n  webfetch: false\n\
                    permission:\n  edit: deny\n  bash:\n    \"*\": ask\n    \"git log *\": allow\n---\nYou review.\n";
        let (text, left_out) = made(FileForm::OpencodeAgent, text);
        assert_eq!(
            text,
            "---\nmode: subagent\ndescription: \"Reviews\"\ntools: [\"!apply_patch\", \"!edit\", \"!web_fetch\", \"!write\"]\npermissions:\n  \
             - {permission: bash, pattern: \"*\", action: ask}\n  - {permission: bash, pattern: \"git log *\", action: allow}\n  \
             - {permission: edit, pattern: \"*\", action: deny}\n---\nYou review.\n"
        );
        assert_eq!(left_out, ["`temperature`", "`model`"]);
        let all = "---\nmode: all\ndescription: d\ntools:\n  bash: true\n---\nx\n";
        assert!(!made(FileForm::OpencodeAgent, all).0.contains("tools"));
        let few = all.replace("  bash", "  read: true\n  \"*\": false\n  bash");
        assert!(made(FileForm::OpencodeAgent, &few).0.contains("tools: [\"!*\", \"bash\", \"read\"]"));
        for lost in [
            "tools: x",
            "permission:\n  edit: perhaps",
            "permission:\n  nonsense: deny",
            "permission:\n  bash:\n    \"git *\": allow\n    \"*push*\": deny",
            "disable: true",
        ] {
            let text = format!("---\ndescription: d\nmode: subagent\n{lost}\n---\nx\n");
            assert!(converted(FileForm::OpencodeAgent, &text).is_err(), "{lost}");
        }
    }

    #[test]
    fn an_agent_of_opencode_that_may_not_edit_edits_with_no_tool() {
        for taken in ["write", "edit", "patch", "multiedit", "multi*"] {
            let text = format!(
                "---\ndescription: d\nmode: subagent\ntools:\n  \"{taken}\": false\n  apply_patch: true\n\
                 permission:\n  edit:\n    \"src/*\": allow\n  bash:\n    \"touch *\": allow\n    \"*\": deny\n---\nx\n"
            );
            let (agent, _) = made(FileForm::OpencodeAgent, &text);
            for tool in ["\"!write\"", "\"!edit\"", "\"!apply_patch\""] {
                assert!(agent.contains(tool) && !agent.contains("\"apply_patch\""), "{taken}: {agent}");
            }
            assert!(
                agent.contains(
                    "permissions:\n  - {permission: bash, pattern: \"*\", action: deny}\n  \
                     - {permission: edit, pattern: \"*\", action: deny}\n---\n"
                ),
                "{taken}: {agent}"
            );
        }
        let only = "---\ndescription: d\ntools:\n  \"*\": false\n  write: true\n---\nx\n";
        let (agent, _) = made(FileForm::OpencodeAgent, only);
        assert!(agent.contains("tools: [\"!*\", \"write\"]\n---"), "{agent}");
    }
}
