//! The rules of an agent of opencode, so that they mean the same here: there the last one that fits decides,
//! here the most specific one. Pure.

use std::cmp::Reverse;

/// A rule as its file has it, under the name that the permission has here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TheirRule {
    pub(super) permission: String,
    pub(super) pattern: String,
    pub(super) action: String,
}

/// Without those that a later one covers. The error names two whose order can't be kept.
pub(super) fn kept(rules: Vec<TheirRule>) -> Result<Vec<TheirRule>, String> {
    // They mean something else here.
    let is_odd = |rule: &&TheirRule| rule.pattern.contains(['?', '\\']) || rule.pattern.ends_with('/');
    if let Some(odd) = rules.iter().find(is_odd) {
        return Err(format!(
            "the pattern `{}` of its rule for `{}` can't be kept",
            odd.pattern, odd.permission
        ));
    }
    let is_covered = |at: usize| {
        let rule = &rules[at];
        rules[at + 1..]
            .iter()
            .any(|later| later.permission == rule.permission && covers(&later.pattern, &rule.pattern))
    };
    let kept: Vec<TheirRule> =
        (0..rules.len()).filter(|at| !is_covered(*at)).map(|at| rules[at].clone()).collect();
    for (at, rule) in kept.iter().enumerate() {
        let of_same = |later: &&TheirRule| {
            later.permission == rule.permission && later.action != rule.action && may_both_fit(rule, later)
        };
        let decides_here = |later: &TheirRule| {
            are_comparable(rule, later) && specificity(&later.pattern) > specificity(&rule.pattern)
        };
        if let Some(later) = kept[at + 1..].iter().filter(of_same).find(|later| !decides_here(later)) {
            return Err(format!(
                "its rules `{}` and `{}` for `{}` would decide the other way round here",
                rule.pattern, later.pattern, rule.permission
            ));
        }
    }
    Ok(kept)
}

/// Whether all that the second pattern fits is fitted by the first: its own stars are only fitted by stars.
fn covers(wide: &str, narrow: &str) -> bool {
    wide.strip_suffix(" *") == Some(narrow) || fits(wide, narrow)
}

/// `*` stands for any run of characters.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some(at) = text.find(piece) else { return false };
        text = &text[at + piece.len()..];
    }
    text.ends_with(last)
}

/// Taken for true wherever the texts before the stars do not rule it out.
fn may_both_fit(one: &TheirRule, other: &TheirRule) -> bool {
    if !are_comparable(one, other) {
        return true;
    }
    let (one, other) = (one.pattern.as_str(), other.pattern.as_str());
    if !one.contains('*') && !other.contains('*') {
        return one == other;
    }
    let (one, other) = (beginning(one), beginning(other));
    one.starts_with(other) || other.starts_with(one)
}

/// Paths that begin at different places have in common what is not in their texts.
fn are_comparable(one: &TheirRule, other: &TheirRule) -> bool {
    let is_path = ["read", "edit"].contains(&one.permission.as_str());
    let base = |pattern: &str| pattern.chars().next().filter(|first| ['/', '~'].contains(first));
    !is_path
        || [one, other].iter().any(|rule| rule.pattern == "*")
        || base(&one.pattern) == base(&other.pattern)
}

/// As attache compares: by the length of what is before a star, then by fewer of them.
fn specificity(pattern: &str) -> (usize, Reverse<usize>) {
    (beginning(pattern).len(), Reverse(pattern.matches('*').count()))
}

/// The text before the first star, without the separator of an optional tail.
fn beginning(pattern: &str) -> &str {
    let beginning = pattern.split('*').next().unwrap_or_default();
    match pattern.strip_prefix(beginning) {
        Some("*") => beginning.strip_suffix([' ', '/']).unwrap_or(beginning),
        Some(_) | None => beginning,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules for one permission, as `action pattern`, with what is kept of them.
    fn kept_of(permission: &str, rules: &str) -> Option<String> {
        let rule = |line: &str| {
            let (action, pattern) = line.split_once(' ').unwrap();
            let [permission, pattern, action] = [permission, pattern, action].map(str::to_owned);
            TheirRule { permission, pattern, action }
        };
        let kept = kept(rules.split("; ").map(rule).collect()).ok()?;
        let lines: Vec<String> =
            kept.into_iter().map(|rule| format!("{} {}", rule.action, rule.pattern)).collect();
        Some(lines.join("; "))
    }

    #[test]
    fn the_last_rule_of_theirs_decides_here_too() {
        for (rules, expected) in [
            ("allow touch *; deny *", "deny *"),
            ("deny *; allow touch *", "deny *; allow touch *"),
            ("allow git; deny git *", "deny git *"),
            ("deny git *; allow git", "deny git *; allow git"),
            ("allow git push *; ask git *; deny rm *", "ask git *; deny rm *"),
            ("allow ls *; deny rm *", "allow ls *; deny rm *"),
            ("allow ls; deny ls -l", "allow ls; deny ls -l"),
            ("allow git *; deny git *", "deny git *"),
            ("deny git *; deny *push*", "deny git *; deny *push*"),
        ] {
            assert_eq!(kept_of("bash", rules).as_deref(), Some(expected), "{rules}");
        }
        assert_eq!(kept_of("edit", "deny *; allow /w/*").as_deref(), Some("deny *; allow /w/*"));
    }

    #[test]
    fn rules_whose_order_can_not_be_kept_are_refused() {
        for (permission, rules) in [
            ("bash", "allow git *; deny *push*"),
            ("bash", "deny *a*b*; allow *b*a*"),
            ("bash", "deny a?"),
            ("edit", "allow src/*; deny /w/src/a.rs"),
            ("edit", "deny ~/a; allow a/*"),
            ("edit", "allow src/"),
        ] {
            assert_eq!(kept_of(permission, rules), None, "{rules}");
        }
    }
}
