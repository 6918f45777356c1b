//! Recognises keys and tokens by their beginnings: a table, and the function that compares.

/// A beginning, and how many token characters have to follow it.
struct KeyShape {
    begins: &'static str,
    tail: usize,
}

const fn shape(begins: &'static str, tail: usize) -> KeyShape {
    KeyShape { begins, tail }
}

/// The lengths are longer than any word with the same beginning, and shorter than the keys issued today.
const SHAPES: &[KeyShape] = &[
    shape("sk-", 16),
    shape("sk_live_", 10),
    shape("sk_test_", 10),
    shape("rk_live_", 10),
    shape("pk_live_", 10),
    shape("whsec_", 16),
    shape("ghp_", 20),
    shape("gho_", 20),
    shape("ghu_", 20),
    shape("ghs_", 20),
    shape("ghr_", 20),
    shape("github_pat_", 20),
    shape("glpat-", 16),
    shape("gldt-", 16),
    shape("glsa_", 20),
    shape("xoxa-", 10),
    shape("xoxb-", 10),
    shape("xoxe-", 10),
    shape("xoxe.", 10),
    shape("xoxp-", 10),
    shape("xoxr-", 10),
    shape("xoxs-", 10),
    shape("xapp-", 10),
    shape("AKIA", 16),
    shape("ASIA", 16),
    shape("AIza", 30),
    shape("ya29.", 20),
    shape("GOCSPX-", 16),
    shape("npm_", 30),
    shape("pypi-", 30),
    shape("hf_", 20),
    shape("gsk_", 20),
    shape("xai-", 20),
    shape("pplx-", 20),
    shape("tvly-", 16),
    shape("fw_", 20),
    shape("r8_", 30),
    shape("nvapi-", 20),
    shape("SG.", 30),
    shape("dop_v1_", 30),
    shape("doo_v1_", 30),
    shape("shpat_", 20),
    shape("shpss_", 20),
    shape("tskey-", 16),
    shape("lin_api_", 20),
    shape("sq0atp-", 16),
    shape("sq0csp-", 16),
    shape("EAACEdEose0cBA", 4),
    shape("AGE-SECRET-KEY-", 20),
    shape("hvs.", 20),
    shape("hvb.", 20),
    shape("dapi", 32),
    shape("eyJ", 40),
];

/// Whether a run of token characters is a key.
pub(super) fn is_key(token: &str) -> bool {
    let known = SHAPES.iter().any(|shape| {
        let tail = token.strip_prefix(shape.begins);
        tail.is_some_and(|tail| {
            tail.len() >= shape.tail && tail.bytes().any(|byte| byte.is_ascii_alphanumeric())
        })
    });
    known && has_mixture(token)
}

/// `sk-learn-estimator-tutorial` begins like a key but consists of words: keys have digits or capitals after
/// the beginning.
fn has_mixture(token: &str) -> bool {
    let tail = &token[token.len() / 2..];
    tail.bytes().any(|byte| byte.is_ascii_digit()) || tail.bytes().any(|byte| byte.is_ascii_uppercase())
}
