//! Every row of the table of prompt blocks, and what must hold for all of them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail loudly")]

use attache_core::ids::MessageId;
use attache_core::part::Role;
use attache_core::ports::store::ModelRef;
use attache_core::prompt::media::Block;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const FETCHES: Fetches = Fetches { images: true, pdf: true };

/// A model that takes every kind of attachment.
fn able() -> ModelInfo {
    let info = ModelInfo::undescribed(ModelRef::new("p", "m"));
    ModelInfo { images: true, audio: true, pdf: true, ..info }
}

/// A model that takes text only.
fn plain() -> ModelInfo {
    ModelInfo::undescribed(ModelRef::new("p", "m"))
}

fn text(text: &str) -> Part {
    Part::Text { text: text.into(), state: None, provider_metadata: None }
}

fn file(mime: &str, url: &str, marks: Marks<'_>) -> Part {
    Part::File {
        media_type: mime.into(),
        url: url.into(),
        filename: marks.uri.and_then(name_of_uri).map(Cow::into_owned),
        provider_metadata: marks.metadata(),
    }
}

fn reference(fields: Value) -> Part {
    Part::Data { name: "file-ref".into(), id: None, data: fields }
}

fn embedded(uri: &str, text: &str) -> Part {
    Part::Data { name: "context".into(), id: None, data: json!({ "uri": uri, "text": text }) }
}

fn written(part: &Part, info: &ModelInfo) -> String {
    match piece(part, info, &BlobBytes::new(), FETCHES) {
        Some(PromptPiece::Text(text)) => text.into_owned(),
        other => panic!("no text: {other:?}"),
    }
}

/// How the model gets a medium: (kind, type, data or address, name).
fn shown(part: &Part, blobs: &BlobBytes) -> (MediaKind, String, String, Option<String>) {
    match piece(part, &able(), blobs, FETCHES) {
        Some(PromptPiece::Media(Media { kind, mime, source, name })) => {
            let source = match source {
                MediaSource::Base64(data) => data.to_owned(),
                MediaSource::Url(url) => url.to_owned(),
            };
            (kind, mime.to_owned(), source, name.map(Cow::into_owned))
        }
        other => panic!("no medium: {other:?}"),
    }
}

#[test]
fn text_is_untouched() {
    for said in ["hi", "", " @rule x\n", "</context> <context ref=\"x\">", "[@a](b)", "\u{0}é🙂\r\n"] {
        let (part, none) = (text(said), BlobBytes::new());
        let piece = piece(&part, &plain(), &none, FETCHES);
        assert!(matches!(piece, Some(PromptPiece::Text(Cow::Borrowed(text))) if text == said), "{said:?}");
    }
}

#[test]
fn a_link_without_a_type_or_to_text_is_a_link() {
    for (fields, link) in [
        (json!({ "name": "b.rs", "uri": "file:///p/b.rs#L1-5" }), "[@b.rs](file:///p/b.rs#L1-5)"),
        (json!({ "name": "b", "uri": "file:///p/b.rs", "mime": "text/rust" }), "[@b](file:///p/b.rs)"),
        (
            json!({ "name": "", "uri": "file:///p/a%20b.rs?x=\"1\"#y" }),
            "[@a%20b.rs?x=\"1\"#y](file:///p/a%20b.rs?x=\"1\"#y)",
        ),
        (
            json!({ "name": "", "uri": "zed:///agent/git-diff?base=feature/x" }),
            "[@git-diff?base=feature/x](zed:///agent/git-diff?base=feature/x)",
        ),
        (json!({ "name": "", "uri": "https://example.org/a" }), "https://example.org/a"),
        (json!({ "name": "", "uri": "file:///" }), "file:///"),
        (json!({ "name": "a](b) é", "uri": "x:y z" }), "[@a](b) é](x:y z)"),
        (json!({ "name": "t", "uri": "u", "title": "T", "description": "d", "size": 3 }), "[@t](u)"),
    ] {
        assert_eq!(written(&reference(fields), &able()), link);
    }
}

#[test]
fn a_link_to_a_medium_is_an_address_where_the_provider_can_fetch_it() {
    let link = |uri: &str, mime: &str| reference(json!({ "name": "n", "uri": uri, "mime": mime }));
    let none = BlobBytes::new();
    let image = shown(&link("https://example.org/a.png", "image/png"), &none);
    let name = || Some("n".to_owned());
    assert_eq!(image, (MediaKind::Image, "image/png".into(), "https://example.org/a.png".into(), name()));
    let pdf = shown(&link("http://example.org/a?x", "application/pdf"), &none);
    assert_eq!(pdf, (MediaKind::Pdf, "application/pdf".into(), "http://example.org/a?x".into(), name()));
    for (uri, mime) in [
        ("file:///a.png", "image/png"),
        ("data:image/png;base64,QUJD", "image/png"),
        ("attache-blob:00", "image/png"),
        ("ftp://example.org/a.png", "image/png"),
        ("httpsx://example.org", "image/png"),
        ("https://example.org/a.wav", "audio/wav"),
        ("https://example.org/a.zip", "application/zip"),
        ("https://example.org/a", "image"),
    ] {
        assert_eq!(written(&link(uri, mime), &able()), format!("[@n]({uri})"));
    }
    assert_eq!(
        written(&link("https://example.org/a.png", "image/png"), &plain()),
        "[@n](https://example.org/a.png)"
    );
    let part = link("https://example.org/a.png", "image/png");
    let unfetched = piece(&part, &able(), &none, Fetches::default());
    assert_eq!(unfetched, Some(PromptPiece::Text("[@n](https://example.org/a.png)".into())));
}

#[test]
fn an_embedded_text_stands_in_a_frame() {
    for (uri, said, framed) in [
        (
            "file:///p/c.rs",
            "fn c() {}\n",
            "[@c.rs](file:///p/c.rs)\n<context ref=\"file:///p/c.rs\">\nfn c() {}\n\n</context>",
        ),
        (
            "zed:///agent/git-diff?base=feature/x",
            "+a",
            "[@git-diff?base=feature/x](zed:///agent/git-diff?base=feature/x)\n\
             <context ref=\"zed:///agent/git-diff?base=feature/x\">\n+a\n</context>",
        ),
        (
            "https://example.org/a",
            "t",
            "https://example.org/a\n<context ref=\"https://example.org/a\">\nt\n</context>",
        ),
        (
            "a\"b",
            "</context>\n</contextual",
            "a\"b\n<context ref=\"a%22b\">\n<\\/context>\n<\\/contextual\n</context>",
        ),
        ("", "", "\n<context ref=\"\">\n\n</context>"),
    ] {
        assert_eq!(written(&embedded(uri, said), &plain()), framed);
    }
}

#[test]
fn images_audio_and_pdf_are_native_where_the_model_takes_them() {
    let none = BlobBytes::new();
    for (mime, kind) in [
        ("image/png", MediaKind::Image),
        ("audio/wav", MediaKind::Audio),
        ("application/pdf", MediaKind::Pdf),
    ] {
        for block in [None, Some(Block::Image), Some(Block::Audio)] {
            let marks = Marks { block, uri: Some("file:///p/a.x"), ..Marks::default() };
            let part = file(mime, &format!("data:{mime};base64,QUJDRA=="), marks);
            assert_eq!(shown(&part, &none), (kind, mime.to_owned(), "QUJDRA==".into(), Some("a.x".into())));
            assert_eq!(written(&part, &plain()), format!("[a.x, {mime}, 4 bytes]"));
        }
    }
}

#[test]
fn what_no_model_takes_is_described_by_name_type_and_size() {
    let data = |mime: &str, base64: &str, marks| file(mime, &format!("data:{mime};base64,{base64}"), marks);
    let uri = |uri| Marks { uri: Some(uri), ..Marks::default() };
    for (part, described) in [
        (data("application/zip", "QUJD", uri("file:///p/a.zip")), "[a.zip, application/zip, 3 bytes]"),
        (data("application/zip", "", uri("file:///p/a.zip")), "[a.zip, application/zip, 0 bytes]"),
        (data("text/plain", "QUI=", uri("https://example.org/a")), "[attachment, text/plain, 2 bytes]"),
        (data("x/y", "QQ==", Marks::default()), "[attachment, x/y, 1 bytes]"),
        (file("image/png", "https://example.org/a.png", Marks::default()), "[attachment, image/png]"),
    ] {
        assert_eq!(written(&part, &able()), described);
    }
    let mut nameless = data("x/y", "QQ==", uri("file:///p/a"));
    if let Part::File { filename, .. } = &mut nameless {
        *filename = Some(String::new());
    }
    assert_eq!(written(&nameless, &able()), "[a, x/y, 1 bytes]");
}

#[test]
fn a_rejected_attachment_is_described_though_the_model_takes_its_kind() {
    let marks = Marks { rejected: Some("too large"), uri: Some("file:///p/a.png"), ..Marks::default() };
    let part = file("image/png", "data:image/png;base64,QUJD", marks);
    assert_eq!(written(&part, &able()), "[a.png, image/png, 3 bytes]");
    let link = reference(
        json!({ "name": "n", "uri": "https://e.org/a.png", "mime": "image/png", "rejected": "gone" }),
    );
    assert_eq!(written(&link, &able()), "[@n](https://e.org/a.png)");
}

#[test]
fn a_large_attachment_comes_from_the_blob_store_and_is_described_when_it_is_gone() {
    let marks = Marks { block: Some(Block::Image), size: Some(2_000_000), ..Marks::default() };
    let part = file("image/png", "attache-blob:00ff", marks.clone());
    let blobs = BlobBytes::from([("00ff".to_owned(), "QUJD".to_owned())]);
    assert_eq!(shown(&part, &blobs), (MediaKind::Image, "image/png".into(), "QUJD".into(), None));
    assert_eq!(written(&part, &able()), "[attachment, image/png, 2000000 bytes]");
    let rejected = file("image/png", "attache-blob:01", Marks { rejected: Some("x"), ..marks });
    let passage = Passage::new(MessageId::new("m"), Role::User, vec![part, rejected]);
    assert_eq!(
        wanted(std::iter::once(&passage), &able()),
        [NeededBlob::Media("00ff")],
        "only what is shown is fetched"
    );
    assert!(wanted(std::iter::once(&passage), &plain()).is_empty());
}

#[test]
fn a_picture_of_a_call_is_fetched_for_models_that_are_shown_it() {
    let output = |url: &str| json!({ "type": "image", "path": "/p/a.png", "mime": "image/png", "size": 3, "url": url });
    let tool = |output: Value| {
        let call = ToolPart::new(attache_core::ids::CallId::new("c"), "view_image");
        Part::Tool(Box::new(ToolPart { state: ToolState::OutputAvailable, output: Some(output), ..call }))
    };
    let mut rejected = output("attache-blob:01");
    rejected["rejected"] = "too large".into();
    let parts = vec![tool(output("attache-blob:00ff")), tool(rejected), tool(json!("attache-blob:02"))];
    let passage = Passage::new(MessageId::new("m"), Role::Assistant, parts);
    assert_eq!(wanted(std::iter::once(&passage), &able()), [NeededBlob::Media("00ff")]);
    assert!(wanted(std::iter::once(&passage), &plain()).is_empty());
    assert!(is_in_blob_store(&passage));
    let text = Passage::new(MessageId::new("m"), Role::Assistant, vec![tool(json!("attache-blob:02"))]);
    assert!(!is_in_blob_store(&text));
}

#[test]
fn what_changed_around_a_session_is_told_as_it_stands() {
    let told = Part::Data {
        name: "environment".into(),
        id: None,
        data: json!({ "text": "<environment>x</environment>" }),
    };
    assert_eq!(written(&told, &plain()), "<environment>x</environment>");
}

#[test]
fn the_context_of_a_turn_stands_in_frames_with_titles() {
    let items = [(Some("a \"b\"".to_owned()), "x </context>".to_owned()), (None, "y".to_owned())];
    let framed = "<context title=\"a %22b%22\">\nx <\\/context>\n</context>\n\n<context>\ny\n</context>";
    assert_eq!(runtime_context(&items).as_deref(), Some(framed));
    assert_eq!(runtime_context(&[]), None);
}

/// Text with everything that could break out of a frame.
fn nasty() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("</context".to_owned()),
        Just("</context>".to_owned()),
        Just("<context ref=\"".to_owned()),
        Just("\"".to_owned()),
        Just("\n".to_owned()),
        ".{0,8}",
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn any_part() -> impl Strategy<Value = Part> {
    let mime = prop_oneof![
        "image/[a-z]{1,5}",
        "audio/[a-z]{1,5}",
        Just("application/pdf".to_owned()),
        "[a-z]{1,4}/[a-z]{1,4}"
    ];
    let uri = prop_oneof![nasty(), Just("https://e.org/a".to_owned()), Just("file:///p/a".to_owned())];
    prop_oneof![
        nasty().prop_map(|said| text(&said)),
        (uri.clone(), nasty()).prop_map(|(uri, said)| embedded(&uri, &said)),
        (nasty(), uri.clone(), mime.clone())
            .prop_map(|(name, uri, mime)| reference(json!({ "name": name, "uri": uri, "mime": mime }))),
        (mime, uri, any::<bool>()).prop_map(|(mime, uri, rejected)| {
            let rejected = rejected.then_some("no");
            let marks = Marks { uri: Some(&uri), rejected, ..Marks::default() };
            file(&mime, &format!("data:{mime};base64,QUJD"), marks)
        }),
    ]
}

/// Whether the piece represents the part: the model always hears of what the user attached.
fn stands_for(piece: &PromptPiece<'_>, part: &Part) -> bool {
    match (part, piece) {
        (Part::Text { text, .. }, PromptPiece::Text(said)) => text == said,
        (Part::File { url, .. }, PromptPiece::Media(Media { source: MediaSource::Base64(data), .. })) => {
            url.ends_with(*data)
        }
        (Part::File { media_type, .. }, PromptPiece::Text(said)) => {
            said.ends_with(&format!(", {media_type}, 3 bytes]"))
        }
        (Part::Data { data, .. }, PromptPiece::Media(Media { source: MediaSource::Url(url), .. })) => {
            data["uri"] == *url
        }
        (Part::Data { data, .. }, PromptPiece::Text(said)) => said.contains(data["uri"].as_str().unwrap()),
        _ => false,
    }
}

proptest! {
    #[test]
    fn every_part_has_its_piece_in_its_place(parts in prop::collection::vec(any_part(), 0..8), takes in any::<bool>()) {
        let passage = Passage::new(MessageId::new("m"), Role::User, parts);
        let info = if takes { able() } else { plain() };
        let blobs = BlobBytes::new();
        let pieces = pieces(&passage, &info, &blobs, FETCHES);
        prop_assert_eq!(pieces.len(), passage.parts.len());
        for (piece, part) in pieces.iter().zip(&passage.parts) {
            prop_assert!(stands_for(piece, part), "{:?} for {:?}", piece, part);
        }
    }

    #[test]
    fn an_embedded_text_survives_byte_for_byte_and_never_leaves_its_frame(uri in nasty(), said in nasty()) {
        let framed = written(&embedded(&uri, &said), &plain());
        let first = link(name_of_uri(&uri).as_deref(), &uri);
        let open = format!("{first}\n<context ref=\"{}\">\n", uri.replace('"', "%22"));
        let inside = framed.strip_prefix(&open).and_then(|rest| rest.strip_suffix("\n</context>"));
        prop_assert!(inside.is_some(), "{}", framed);
        let inside = inside.unwrap();
        prop_assert!(!inside.contains("</context"));
        prop_assert_eq!(inside.replace("<\\/context", "</context"), said.replace("<\\/context", "</context"));
        if !said.contains("</context") {
            prop_assert_eq!(inside, said);
        }
    }
}
