//! How many requests each connection carries before it is closed.

use crate::draw::even;

/// Numbers of requests, by weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Lengths {
    /// Sum of the weights up to and including this length's, and the length.
    lengths: Vec<(u64, u64)>,
}

impl Lengths {
    /// Parses `REQUESTS:WEIGHT`, separated by spaces. None: the text is empty, so connections stay open.
    pub fn read(text: &str) -> Result<Option<Lengths>, String> {
        let mut lengths = Vec::new();
        let mut sum = 0u64;
        for part in text.split_ascii_whitespace() {
            let number = |text: &str| text.parse::<u64>().ok().filter(|number| (1..=1 << 40).contains(number));
            let read = part.split_once(':').and_then(|(length, weight)| Some((number(length)?, number(weight)?)));
            let (length, weight) = read.ok_or_else(|| format!("{part:?} is not REQUESTS:WEIGHT"))?;
            sum += weight;
            lengths.push((sum, length));
        }
        Ok(if lengths.is_empty() { None } else { Some(Lengths { lengths }) })
    }

    /// How many requests connection number `opened` of a client carries. Any stretch of them has each length as often as its weight says.
    pub fn of(&self, client: u64, opened: u64) -> u64 {
        // Clients begin far from each other: by multiples of another irrational number, the square root of 2.
        const ROOT: u64 = 0x6a09_e667_f3bc_c908;
        let sum = self.lengths.last().map_or(0, |(sum, _)| *sum);
        let ticket = even(client.wrapping_mul(ROOT), opened, sum);
        let at = self.lengths.partition_point(|(up_to, _)| *up_to <= ticket);
        self.lengths.get(at).map_or(1, |(_, length)| *length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_as_often_as_their_weights_say_for_each_client_and_for_all() {
        let lengths = Lengths::read("1:500 3:300 100:200").unwrap().unwrap();
        let count = |clients: u64, opened: u64, wanted: u64| {
            let all = (0..clients).flat_map(|client| (0..opened).map(move |number| (client, number)));
            all.filter(|(client, number)| lengths.of(*client, *number) == wanted).count() as f64
        };
        for (length, share) in [(1, 0.5), (3, 0.3), (100, 0.2)] {
            assert!((count(1, 1000, length) - 1000.0 * share).abs() <= 5.0, "{length}");
            assert!((count(64, 20, length) - 1280.0 * share).abs() <= 26.0, "{length}");
            assert!((count(200, 1, length) - 200.0 * share).abs() <= 5.0, "{length}: the first of many clients");
        }
    }

    #[test]
    fn what_is_no_length_with_a_weight_is_refused() {
        assert_eq!(Lengths::read(" "), Ok(None));
        for text in ["1", "0:1", "1:0", "1:2,3:4", "-1:2", "1:2:3", "99999999999999999999:1"] {
            assert!(Lengths::read(text).is_err(), "{text}");
        }
    }
}
