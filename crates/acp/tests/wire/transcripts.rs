//! The table of chunks and updates, read from `updates.md`.

use std::collections::BTreeSet;

use attache_acp::to_wire::{CompactionUpdates, Notices, ThoughtUpdates};
use attache_core::chunk::Chunk;
use attache_core::chunk::json::decode;
use attache_core::part::Role;
use serde_json::Value;

use crate::{lines_of_step, view};

const TABLE: &str = include_str!("../updates.md");

struct Section {
    title: String,
    flags: String,
    entries: Vec<(Role, Chunk)>,
    expected: Vec<Value>,
}

fn sections() -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in TABLE.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "##" {
            let title = rest.to_owned();
            sections.push(Section { title, flags: String::new(), entries: vec![], expected: vec![] });
        }
        let Some(section) = sections.last_mut() else { continue };
        let chunk = || decode(rest).unwrap_or_else(|error| panic!("{}: {error}: {rest}", section.title));
        match word {
            "agent" => section.entries.push((Role::Assistant, chunk())),
            "user" => section.entries.push((Role::User, chunk())),
            "system" => section.entries.push((Role::System, chunk())),
            "=>" => section.expected.push(serde_json::from_str(rest).unwrap()),
            "view" => section.flags = rest.to_owned(),
            "##" | "" => {}
            other => panic!("{}: what is {other:?}?", section.title),
        }
    }
    sections
}

#[test]
fn every_section_of_the_table_holds() {
    for section in sections() {
        let mut view = view();
        for flag in section.flags.split_whitespace() {
            match flag {
                "notices" => view.notices = Notices::Wanted,
                "compaction" => view.compaction = CompactionUpdates::Wanted,
                "no-thoughts" => view.thoughts = ThoughtUpdates::Drop,
                other => panic!("{}: what is {other:?}?", section.title),
            }
        }
        let mut step = 0;
        let updates: Vec<Value> = section
            .entries
            .iter()
            .flat_map(|(role, chunk)| {
                step += u32::from(matches!(chunk, Chunk::StartStep { .. }));
                lines_of_step(step, chunk, *role, &view)
            })
            .map(|(_, update)| update)
            .collect();
        assert_eq!(updates.len(), section.expected.len(), "{}: {updates:#?}", section.title);
        for (update, expected) in updates.iter().zip(&section.expected) {
            assert_eq!(update, expected, "{}", section.title);
        }
    }
}

#[test]
fn the_table_speaks_of_every_chunk() {
    let spoken: BTreeSet<String> = sections()
        .iter()
        .flat_map(|section| &section.entries)
        .map(|(_, chunk)| chunk.kind().into_owned())
        .collect();
    for kind in [
        "start",
        "start-step",
        "finish-step",
        "text-start",
        "text-delta",
        "text-end",
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "tool-input-start",
        "tool-input-delta",
        "tool-input-available",
        "tool-input-error",
        "tool-approval-request",
        "tool-output-available",
        "tool-output-error",
        "tool-output-denied",
        "source-url",
        "source-document",
        "file",
        "message-metadata",
        "error",
        "abort",
        "finish",
        "data-plan",
        "data-title",
        "data-mode",
        "data-usage",
        "data-compaction",
        "data-notice",
        "data-status",
        "data-file-ref",
        "data-context",
        "data-approval",
    ] {
        assert!(spoken.contains(kind), "{kind}");
    }
}
