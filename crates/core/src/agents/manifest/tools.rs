//! The tools that a manifest names: a list, a text with commas or a map, by our names or by those of another
//! agent.

use super::{ManifestDialect, ManifestReader};
use crate::agents::ToolPattern;
use crate::front_matter::{FrontMatterError, FrontNode, NodeValue};
use crate::nearest::meant;
use crate::tool_names::BUILTIN_TOOLS;
use crate::toolbox::own_name;

/// A name as it is written, and where.
struct NamedTool {
    text: String,
    line: usize,
}

impl ManifestReader<'_> {
    /// `None`: the manifest says nothing about tools.
    pub(super) fn tools(&mut self) -> Result<Option<Vec<ToolPattern>>, FrontMatterError> {
        let said = self.front.node("tools")?.map(|node| named(&node, "tools")).transpose()?;
        let without = match self.file.dialect {
            ManifestDialect::Claude => self.front.node("disallowedTools")?,
            ManifestDialect::BuiltIn | ManifestDialect::Own => None,
        };
        let without = without.map(|node| named(&node, "disallowedTools")).transpose()?.unwrap_or_default();
        if said.is_none() && without.is_empty() {
            return Ok(None);
        }
        let mut patterns: Vec<ToolPattern> =
            said.into_iter().flatten().map(|tool| self.pattern(&tool)).collect();
        for tool in without {
            let tool = NamedTool { text: format!("!{}", tool.text), ..tool };
            patterns.push(self.pattern(&tool));
        }
        Ok(Some(patterns))
    }

    fn pattern(&mut self, tool: &NamedTool) -> ToolPattern {
        let (sign, name) = match tool.text.strip_prefix('!') {
            Some(name) => ("!", name.trim()),
            None => ("", tool.text.as_str()),
        };
        // `Bash(git diff:*)`: the tool list decides only which tools are offered; permissions decide which
        // commands pass.
        let name = match name.split_once('(') {
            Some((name, _)) => {
                let problem = format!("`{}`: only the name counts; rules say which calls pass", tool.text);
                self.note(tool.line, problem);
                name.trim()
            }
            None => name,
        };
        let of_server = name.strip_prefix("mcp__").map(|rest| match rest.split_once("__") {
            Some((server, tool)) => format!("{server}_{tool}"),
            None => format!("{rest}_*"),
        });
        let is_ours = |name: &str| BUILTIN_TOOLS.contains(&name) || name.contains('*');
        let known = of_server.or_else(|| match is_ours(name) {
            true => Some(name.to_owned()),
            false => own_name(name).map(str::to_owned),
        });
        // A tool of an MCP server has the server's name before its own; which servers there are is not known
        // yet.
        if known.is_none() && !name.contains(['_', '-']) {
            let problem = format!("there is no tool `{name}`{}", meant(&name.to_lowercase(), BUILTIN_TOOLS));
            self.note(tool.line, problem);
        }
        ToolPattern::new(&format!("{sign}{}", known.as_deref().unwrap_or(name)))
    }
}

fn named(node: &FrontNode, key: &str) -> Result<Vec<NamedTool>, FrontMatterError> {
    let wrong = |line: usize| {
        let problem = format!("`{key}` must be names: a list, a text with commas, or `name: false` below it");
        FrontMatterError::new(line, problem)
    };
    match &node.value {
        NodeValue::Plain(text) | NodeValue::Quoted(text) => {
            let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
            Ok(names.map(|name| NamedTool { text: name.to_owned(), line: node.line }).collect())
        }
        NodeValue::List(items) => items
            .iter()
            .map(|item| {
                let text = item.text().filter(|text| !text.is_empty()).ok_or_else(|| wrong(item.line))?;
                Ok(NamedTool { text: text.to_owned(), line: item.line })
            })
            .collect(),
        // A map removes only what it names.
        NodeValue::Map(entries) => {
            let everything = NamedTool { text: "*".to_owned(), line: node.line };
            let named = entries.iter().map(|(name, node)| match node.text() {
                Some("true") => Ok(NamedTool { text: name.clone(), line: node.line }),
                Some("false") => Ok(NamedTool { text: format!("!{name}"), line: node.line }),
                Some(_) | None => Err(wrong(node.line)),
            });
            std::iter::once(Ok(everything)).chain(named).collect()
        }
    }
}
