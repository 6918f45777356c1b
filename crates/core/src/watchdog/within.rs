//! One call as two judges see it: a session, and one that it works for. Both have to let it pass.

use super::judge::Judged;

impl Judged {
    /// The same call as somebody else judged it who has to let it pass, too: the stricter of the two, and no
    /// more than either grants. What it needs granted is what one of them lacks.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        let mut both = self;
        both.verdict = both.verdict.or_stricter(other.verdict);
        for (places, others) in [(&mut both.outside, other.outside), (&mut both.grants, other.grants)] {
            let new: Vec<_> = others.into_iter().filter(|place| !places.contains(place)).collect();
            places.extend(new);
        }
        both.network = both.network.min(other.network);
        both.writes = both.writes.min(other.writes);
        both
    }
}
