//! Encodes latencies as an HDR histogram (V2, compressed, base64), which Python's hdrhistogram decodes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use std::fmt;

const HOUR_NS: u64 = 3_600_000_000_000;

/// Latencies in nanoseconds: three significant digits, up to one hour.
#[derive(Clone)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns.max(1));
    }

    pub fn add(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    #[cfg(test)]
    pub fn quantile(&self, share: f64) -> u64 {
        self.0.value_at_quantile(share)
    }

    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut bytes).expect("a Vec takes everything");
        STANDARD.encode(bytes)
    }
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies(Histogram::new_with_bounds(1, HOUR_NS, 3).expect("the bounds are sound"))
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} latencies", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;

    #[test]
    fn what_is_encoded_is_what_was_recorded_within_three_digits() {
        let mut latencies = Latencies::default();
        for ns in [0, 1, 1_000, 123_456_789, u64::MAX] {
            latencies.record(ns);
        }
        let text = latencies.encode();
        assert!(text.starts_with("HISTF"), "{text}");
        let bytes = STANDARD.decode(text).unwrap();
        let back: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(back.len(), 5);
        let median = back.value_at_quantile(0.5);
        assert_eq!(median, 1_000);
        let fourth = back.value_at_quantile(0.8) as f64;
        assert!((fourth / 123_456_789.0 - 1.0).abs() < 0.001);
    }

    #[test]
    fn histograms_of_threads_add_up() {
        let (mut one, mut other) = (Latencies::default(), Latencies::default());
        one.record(10);
        other.record(20);
        one.add(&other);
        assert_eq!(one.0.len(), 2);
    }
}
