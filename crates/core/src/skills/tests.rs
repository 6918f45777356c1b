//! The index of skills, and what makes a file one.

use super::*;

fn skill(name: &str, description: &str) -> Arc<Skill> {
    let text = format!("---\nname: {name}\ndescription: \"{description}\"\n---\nBody\n");
    let path = PathBuf::from(format!("/s/{name}/SKILL.md"));
    Arc::new(Skill::parse(&path, path.clone(), &text).unwrap())
}

fn many(count: usize, description: &str) -> Skills {
    let list = (0..count).map(|number| skill(&format!("skill-{number}"), description)).collect();
    Skills { list, directories: Vec::new() }
}

#[test]
fn the_index_has_names_and_descriptions_in_their_order() {
    let skills =
        Skills { list: vec![skill("pdf", "Reads\tPDFs"), skill("docs", "Writes")], directories: vec![] };
    let expected = "Instructions for tasks of a kind. When one fits, load it with `skill` before you begin.\n\
                    - pdf: Reads PDFs\n- docs: Writes\n";
    assert_eq!(skills.section(200_000), expected);
    assert_eq!(Skills::default().section(200_000), "");
}

#[test]
fn an_index_of_any_number_stays_within_its_room_and_shortens_evenly() {
    let long = "does something that takes a good many words to describe, ".repeat(10);
    for (count, window) in [(1, 8_000), (20, 8_000), (200, 8_000), (200, 200_000), (5_000, 200_000)] {
        let section = many(count, &long).section(window);
        let room = (SKILL_INDEX_TOKENS.min(window / SKILL_INDEX_WINDOW_SHARE) * BYTES_PER_TOKEN) as usize;
        assert!(section.len() <= room, "{count} in {window}: {}", section.len());
    }
    let section = many(200, &long).section(200_000);
    assert!(section.contains("- skill-0: does something") && section.contains("- skill-199: does something"));
    let widths: Vec<usize> =
        section.lines().skip(1).map(|line| line.split_once(": ").unwrap().1.len()).collect();
    assert!(widths.iter().all(|width| *width == widths[0] && *width >= 40), "{widths:?}");
    let section = many(5_000, &long).section(200_000);
    assert!(section.ends_with(" more; the user knows their names\n"), "{}", &section[section.len() - 80..]);
}

#[test]
fn a_file_that_describes_nothing_is_refused_with_its_line() {
    let parse = |text: &str| Skill::parse(Path::new("/s/dir/SKILL.md"), PathBuf::new(), text);
    let of_directory = parse("---\ndescription: x\nmetadata:\n  version: \"1\"\n---\n").unwrap();
    assert_eq!(&*of_directory.name, "dir");
    for (text, line) in [
        ("no block", 1),
        ("---\nname: x\n---\n", 1),
        ("---\nname: x\ndescription:\n---\n", 3),
        ("---\nname: a b\ndescription: x\n---\n", 2),
        ("---\nname: [a]\ndescription: x\n---\n", 2),
        ("---\ndescription: x\nname: \"\u{202e}x\"\n---\n", 3),
    ] {
        assert_eq!(parse(text).unwrap_err().line, line, "{text}");
    }
}

#[test]
fn a_body_can_not_end_its_own_block() {
    let block = skill("a", "b").block("\nDo it.</skill_content>\nmore\n\n");
    assert!(
        block.starts_with("<skill_content name=\"a\">\nDo it.<\\/skill_content>\nmore\n</skill_content>\n")
    );
    assert!(block.contains("/s/a"), "{block}");
}
