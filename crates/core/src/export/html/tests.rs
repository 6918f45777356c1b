//! Tries to break out of the page.

use serde_json::json;

use super::*;

fn shown(data: Value) -> String {
    let mut out = Vec::new();
    part(&mut out, &serde_json::from_value(data).unwrap()).unwrap();
    String::from_utf8(out).unwrap()
}

/// Wherever foreign text can appear, it makes no tag, no attribute and no address that runs.
#[test]
fn what_others_wrote_is_text_wherever_it_stands() {
    const EVIL: &str = "\"><script>alert(1)</script><img src=x onerror='x()'>`${x}`&amp;\u{202e}";
    let diff = json!({"type": "diff", "path": EVIL, "oldText": EVIL, "newText": format!("{EVIL}!")});
    let parts = [
        json!({"type": "text", "text": EVIL}),
        json!({"type": "text", "text": format!("```{EVIL}\n{EVIL}\n```\n{EVIL}")}),
        json!({"type": "reasoning", "text": EVIL}),
        json!({"type": "source-url", "sourceId": "s", "url": format!("https://x/{EVIL}"), "title": EVIL}),
        json!({"type": "source-document", "sourceId": "s", "mediaType": EVIL, "title": EVIL}),
        json!({"type": "file", "mediaType": EVIL, "url": EVIL, "filename": EVIL}),
        json!({"type": "file", "mediaType": "image/png", "url": format!("data:image/png;base64,{EVIL}"), "filename": EVIL}),
        json!({"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA", "filename": EVIL}),
        json!({"type": "data-plan", "data": {"entries": [{"content": EVIL, "status": EVIL}]}}),
        json!({"type": "data-context", "data": {"uri": EVIL, "text": EVIL}}),
        json!({"type": "data-file-ref", "data": {"name": EVIL, "uri": format!("javascript:{EVIL}")}}),
        json!({"type": "data-command", "data": {"text": EVIL}}),
        json!({"type": "data-notice", "data": {"severity": EVIL, "title": EVIL, "description": EVIL}}),
        json!({"type": "tool-bash", "toolCallId": "c", "state": "output-error", "input": {EVIL: EVIL},
            "errorText": EVIL, "toolMetadata": {"attache": {"title": EVIL, "content": [diff]}}}),
        json!({"type": "dynamic-tool", "toolName": EVIL, "toolCallId": "c", "state": "output-available",
            "input": EVIL, "output": EVIL}),
    ];
    for part in parts {
        let page = shown(part.clone());
        for forbidden in ["<script", "<img src=x", "onerror='", "javascript:\"", "\u{202e}"] {
            assert!(!page.contains(forbidden), "{forbidden} of {part} in\n{page}");
        }
        let opened = page.matches('<').count();
        assert_eq!(opened, page.matches('>').count(), "{page}");
    }
}

#[test]
fn only_addresses_of_the_web_are_links_and_only_pictures_are_pictures() {
    assert!(
        link("https://example.org/?a=1&b=2", "x").starts_with("<a href=\"https://example.org/?a=1&amp;b=2\"")
    );
    for url in
        ["javascript:alert(1)", " https://x", "data:text/html,x", "https:evil", "http://a\nb", "/etc", ""]
    {
        assert!(!link(url, "x").contains("<a "), "{url}");
    }
    assert!(picture("data:image/png;base64,iVBORw0=").is_some());
    for url in
        ["data:image/svg+xml;base64,AAAA", "data:image/png;base64,A\"", "data:text/html;base64,AAAA", "x"]
    {
        assert_eq!(picture(url), None, "{url}");
    }
}

#[test]
fn fences_become_blocks_and_an_open_one_goes_to_the_end() {
    let text = "Look:\n\n```rust\nlet a = 1;\n```\nand\n````\n```\nopen";
    let page = shown(json!({"type": "text", "text": text}));
    let expected = "<div class=\"text\">Look:</div>\n<pre class=\"code\">let a = 1;</pre>\n\
                    <div class=\"text\">and</div>\n<pre class=\"code\">&#96;&#96;&#96;\nopen</pre>\n";
    assert_eq!(page, expected);
}
