//! Turns a server's response into text for a model: HTML becomes Markdown, texts are decoded, everything else
//! is refused.

use std::time::{Duration, Instant};

use dom_query::{Document, NodeRef};
use dom_smoothie::{Readability, TextMode};
use encoding_rs::{Encoding, UTF_8};
use html5ever::ParseOpts;
use html5ever::tendril::TendrilSink;
use html5ever::tree_builder::TreeBuilderOpts;

use super::Got;
use crate::limits::{WEB_NESTING, WEB_PARSE_TIME, WEB_PIECE_BYTES, WEB_STACK_BYTES};

/// The text of a page, or what it is instead. May take long; call it where blocking is allowed.
pub(crate) fn readable(got: &Got) -> Result<String, String> {
    let given = got.content_type.as_deref().unwrap_or("text/plain");
    let kind = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_html = matches!(kind.as_str(), "text/html" | "application/xhtml+xml");
    let is_text = kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || matches!(kind.as_str(), "application/json" | "application/xml" | "application/javascript");
    if !is_text && !is_html {
        return Err(format!("is {kind}, not a text; download it with a command if it is needed"));
    }
    if got.body.contains(&0) && !got.body.starts_with(b"\xff\xfe") && !got.body.starts_with(b"\xfe\xff") {
        return Err(format!("claims to be {kind} but is binary"));
    }
    let (text, _, _) = charset(given, &got.body).decode(&got.body);
    if is_html { markdown(text.into_owned(), got.url.as_str()) } else { Ok(text.into_owned()) }
}

/// The server's encoding, else the one that the page names near its beginning, else UTF-8.
fn charset(content_type: &str, body: &[u8]) -> &'static Encoding {
    let label = |text: &str| {
        let lower = text.to_ascii_lowercase();
        let rest = &lower[lower.find("charset=")? + "charset=".len()..];
        let rest = rest.trim_start_matches(['"', '\'', ' ']);
        let end =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c)).unwrap_or(rest.len());
        Encoding::for_label(&rest.as_bytes()[..end])
    };
    let beginning = String::from_utf8_lossy(&body[..body.len().min(1024)]);
    label(content_type).or_else(|| label(&beginning)).unwrap_or(UTF_8)
}

fn markdown(html: String, url: &str) -> Result<String, String> {
    let url = url.to_owned();
    let converting = std::thread::Builder::new()
        .stack_size(WEB_STACK_BYTES)
        .spawn(move || convert(&html, &url))
        .map_err(|error| format!("can't be converted: {error}"))?;
    converting.join().map_err(|_| "can't be converted".to_owned())?
}

/// Parses piece by piece, so that it can give up on a page that is made to be slow. The converters recurse for
/// each level and the parser searches the levels for each element, hence the limit on levels.
pub(super) fn parse(html: &str, within: Duration) -> Result<Document, String> {
    let too_deep = || format!("is nested more than {WEB_NESTING} levels deep");
    let started = Instant::now();
    // The content of `noscript` is meant for us.
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let options = ParseOpts { tree_builder, ..ParseOpts::default() };
    let mut parser = html5ever::parse_document(Document::default(), options);
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(WEB_PIECE_BYTES));
        parser.process(piece.into());
        rest = after;
        let last_nodes = std::iter::successors(Some(parser.tokenizer.sink.sink.root()), NodeRef::last_child);
        if last_nodes.take(WEB_NESTING + 1).count() > WEB_NESTING {
            return Err(too_deep());
        }
        if started.elapsed() > within {
            return Err(format!("takes longer than {within:?} to read"));
        }
    }
    let page = parser.finish();
    if levels(&page) > WEB_NESTING { Err(too_deep()) } else { Ok(page) }
}

fn levels(page: &Document) -> usize {
    let (mut node, mut depth, mut deepest) = (page.root(), 0usize, 0usize);
    loop {
        if let Some(child) = node.first_child() {
            (node, depth) = (child, depth + 1);
            deepest = deepest.max(depth);
            continue;
        }
        while node.next_sibling().is_none() {
            let Some(parent) = node.parent() else { return deepest };
            (node, depth) = (parent, depth - 1);
        }
        let Some(sibling) = node.next_sibling() else { return deepest };
        node = sibling;
    }
}

fn convert(html: &str, url: &str) -> Result<String, String> {
    // Classes name the language of code.
    let as_markdown = dom_smoothie::Config {
        text_mode: TextMode::Markdown,
        keep_classes: true,
        ..dom_smoothie::Config::default()
    };
    let page = parse(html, WEB_PARSE_TIME)?;
    match Readability::with_document(page, Some(url), Some(as_markdown)).and_then(|mut page| page.parse()) {
        Ok(article) if article.title.trim().is_empty() => Ok(article.text_content.into()),
        Ok(article) => Ok(format!("# {}\n\n{}", article.title.trim(), article.text_content)),
        // A page without an article (a list, a form) is shown as a whole. Parsed again, because the search for
        // an article took it apart.
        Err(_) => Ok(parse(html, WEB_PARSE_TIME)?.md(Some(&["script", "style", "noscript", "svg"])).into()),
    }
}
