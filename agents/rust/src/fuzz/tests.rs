//! Every target answers what real servers sent, and the corpus that fuzzing has kept.

use super::TARGETS;
use std::path::{Path, PathBuf};

fn kept(kind: &str, target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz").join(kind).join(target);
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn every_target_answers_its_seeds_and_its_corpus() {
    for (name, run) in TARGETS {
        let samples = kept("samples", name);
        assert!(!samples.is_empty(), "{name} has no sample");
        for (path, data) in samples.into_iter().chain(kept("corpus", name)) {
            println!("{}", path.display());
            run(&data);
        }
    }
}
