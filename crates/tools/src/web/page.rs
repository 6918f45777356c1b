//! From what a server sent to text for a model: HTML becomes Markdown, texts are decoded, all else is refused.

use dom_smoothie::{Readability, TextMode};
use encoding_rs::{Encoding, UTF_8};

use super::Got;
use crate::limits::{WEB_NESTING, WEB_STACK_BYTES};

/// The text of a page, or what it is instead. May take a while; call it where blocking is allowed.
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

/// As the server says, else as the page says near its beginning, else UTF-8.
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
    // The converters call themselves for each level; a page made of levels would end the process.
    if nesting(&html) > WEB_NESTING {
        return Err(format!("is nested more than {WEB_NESTING} levels deep"));
    }
    let url = url.to_owned();
    let converting = std::thread::Builder::new()
        .stack_size(WEB_STACK_BYTES)
        .spawn(move || convert(&html, &url))
        .map_err(|error| format!("can't be converted: {error}"))?;
    converting.join().map_err(|_| "can't be converted".to_owned())
}

fn convert(html: &str, url: &str) -> String {
    // Classes say what language code is in.
    let as_markdown = dom_smoothie::Config {
        text_mode: TextMode::Markdown,
        keep_classes: true,
        ..dom_smoothie::Config::default()
    };
    let page = Readability::new(html, Some(url), Some(as_markdown)).and_then(|mut page| page.parse());
    match page {
        Ok(article) if article.title.trim().is_empty() => article.text_content.into(),
        Ok(article) => format!("# {}\n\n{}", article.title.trim(), article.text_content),
        // A page without an article (a list, a form) is shown whole.
        Err(_) => dom_query::Document::from(html).md(Some(&["script", "style", "noscript", "svg"])).into(),
    }
}

/// An upper bound of how deep elements stand in each other. Elements that end by themselves don't count.
fn nesting(html: &str) -> usize {
    const UNCOUNTED: [&str; 24] = [
        "area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta",
        "option", "p", "param", "source", "tbody", "td", "th", "thead", "tr", "track", "wbr",
    ];
    let (mut depth, mut deepest) = (0usize, 0usize);
    for tag in html.split('<').skip(1) {
        let closes = tag.starts_with('/');
        let name = tag.trim_start_matches('/');
        let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
        let name = name[..end].to_ascii_lowercase();
        if name.is_empty() || UNCOUNTED.contains(&name.as_str()) {
            continue;
        }
        depth = if closes { depth.saturating_sub(1) } else { depth + 1 };
        deepest = deepest.max(depth);
    }
    deepest
}
