//! Counts failed operations by their code, as one text: `status-404=12 closed-early=3`.

/// Number of failed operations by code.
#[derive(Debug, Default, Clone)]
pub struct Kinds(Vec<(String, u64)>);

/// Maximum number of kinds; the rest counts as `other`.
const NAMED: usize = 16;

impl Kinds {
    #[cold]
    pub fn count(&mut self, kind: &str, times: u64) {
        match self.0.iter_mut().find(|(known, _)| known == kind) {
            Some((_, count)) => *count += times,
            None => self.0.push((kind.to_string(), times)),
        }
    }

    pub fn add(&mut self, other: &Kinds) {
        for (kind, count) in &other.0 {
            self.count(kind, *count);
        }
    }

    /// Most frequent first, equal counts by name.
    pub fn spell(&self) -> String {
        let mut sorted = self.0.clone();
        sorted.sort_by(|(a, count_a), (b, count_b)| count_b.cmp(count_a).then_with(|| a.cmp(b)));
        let rest: u64 = sorted.iter().skip(NAMED).map(|(_, count)| count).sum();
        sorted.truncate(NAMED);
        if rest > 0 {
            sorted.push(("other".to_string(), rest));
        }
        sorted.iter().map(|(kind, count)| format!("{kind}={count}")).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_comes_first_and_the_sums_are_those_of_all_threads() {
        let (mut one, mut two) = (Kinds::default(), Kinds::default());
        assert_eq!(one.spell(), "");
        one.count("closed-early", 3);
        one.count("status-404", 5);
        two.count("status-404", 7);
        two.count("40001", 3);
        one.add(&two);
        assert_eq!(one.spell(), "status-404=12 40001=3 closed-early=3");
    }

    #[test]
    fn kinds_beyond_sixteen_count_as_other() {
        let mut kinds = Kinds::default();
        for number in 1..=20 {
            kinds.count(&format!("status-{}", 400 + number), number);
        }
        let text = kinds.spell();
        assert!(text.starts_with("status-420=20 status-419=19 "), "{text}");
        assert!(text.ends_with(" status-405=5 other=10"), "{text}");
        assert_eq!(text.split(' ').count(), 17);
    }
}
