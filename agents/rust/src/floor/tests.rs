use super::*;

const CIPHERS: [&str; 9] = [
    "aes256-gcm",
    "aes128-gcm",
    "chacha20",
    "aes128-cbc",
    "aes192-cbc",
    "aes256-cbc",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
];
const MACS: [&str; 3] = ["hmac-sha1", "hmac-sha256", "hmac-sha512"];

fn page(cipher: &str, mac: Option<&str>) -> Page {
    let (cipher, kind) = cipher_of(cipher).unwrap();
    Page::new(cipher, kind, mac.map(|name| Mac::new(name, b"key").unwrap())).unwrap()
}

fn asked(cipher: &str, bytes: u64) -> message::Floor {
    message::Floor { cipher: cipher.into(), bytes, mac: None, unit: None }
}

fn refusal(asked: message::Floor) -> String {
    let failure = measure(&asked).unwrap_err();
    assert_eq!(failure.code, "bad-message");
    failure.text
}

#[test]
fn sealed_units_open() {
    for cipher in CIPHERS {
        let mut page = page(cipher, None);
        let (clear, mut sealed, mut opened, mut tag) = ([3; 64], [0; 64], [0; 64], Vec::new());
        page.seal(&nonce(1, 2), &clear, &mut sealed, &mut tag).unwrap();
        assert_ne!(clear, sealed, "{cipher}");
        assert!(page.open(&nonce(1, 2), &sealed, &mut opened, &tag).unwrap());
        assert_eq!(clear, opened, "{cipher}");
        let before = sealed;
        page.seal(&nonce(1, 3), &clear, &mut sealed, &mut tag).unwrap();
        assert_ne!(before, sealed, "{cipher}: another nonce");
    }
}

#[test]
fn changed_units_do_not_open_if_something_authenticates_them() {
    for cipher in ["aes256-gcm", "chacha20"] {
        let mut page = page(cipher, None);
        let (mut sealed, mut opened, mut tag) = ([0; 64], [0; 64], Vec::new());
        page.seal(&nonce(1, 2), &[3; 64], &mut sealed, &mut tag).unwrap();
        sealed[5] ^= 1;
        assert!(page.open(&nonce(1, 2), &sealed, &mut opened, &tag).is_err());
    }
    for mac in MACS {
        let mut page = page("aes256-cbc", Some(mac));
        let (mut sealed, mut opened, mut tag) = ([0; 64], [0; 64], Vec::new());
        page.seal(&nonce(1, 2), &[3; 64], &mut sealed, &mut tag).unwrap();
        assert!(page.open(&nonce(1, 2), &sealed, &mut opened, &tag).unwrap());
        assert!(!page.open(&nonce(1, 3), &sealed, &mut opened, &tag).unwrap(), "the nonce is authenticated too");
        sealed[5] ^= 1;
        assert!(!page.open(&nonce(1, 2), &sealed, &mut opened, &tag).unwrap());
    }
}

/// RFC 4231, test case 2, and RFC 2202 for SHA-1; computed twice, as for two pages.
#[test]
fn a_mac_is_hmac() {
    let known = [
        ("hmac-sha1", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
        ("hmac-sha256", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        (
            "hmac-sha512",
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
        ),
    ];
    for (name, expected) in known {
        let (mut mac, mut tag) = (Mac::new(name, b"Jefe").unwrap(), Vec::new());
        for _ in 0..2 {
            mac.of(b"what do ya want ", b"for nothing?", &mut tag).unwrap();
            let hex: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, expected);
        }
    }
}

/// NIST SP 800-38A, F.2.5 and F.5.5: the first block.
#[test]
fn the_modes_are_those_of_the_standard() {
    let hex = |text: &str| -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    };
    let key = hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
    let clear = hex("6bc1bee22e409f96e93d7e117393172a");
    for (name, nonce, expected) in [
        ("aes256-cbc", "000102030405060708090a0b0c0d0e0f", "f58c4c04d6e5f1ba779eabfb5f7bfbd6"),
        ("aes256-ctr", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", "601ec313775789a5b7a7f504bbf3d228"),
    ] {
        let (cipher, _) = cipher_of(name).unwrap();
        let mut page = page(name, None);
        page.sealing.encrypt_init(Some(cipher), Some(&key), None).unwrap();
        let (mut sealed, mut tag) = (vec![0; 16], Vec::new());
        page.seal(&hex(nonce).try_into().unwrap(), &clear, &mut sealed, &mut tag).unwrap();
        assert_eq!(sealed, hex(expected), "{name}");
    }
}

#[test]
fn every_cipher_has_a_floor() {
    for cipher in CIPHERS {
        let floor = measure(&asked(cipher, 1 << 20)).unwrap();
        assert!(floor.bytes >= 1 << 20);
        assert!(floor.seal_ns_per_byte > 0.0 && floor.open_ns_per_byte > 0.0);
    }
    for mac in MACS {
        let with = message::Floor { mac: Some(mac.into()), unit: Some(4016), ..asked("aes256-cbc", 1 << 20) };
        let floor = measure(&with).unwrap();
        assert!(floor.bytes >= 1 << 20 && floor.bytes % 4016 == 0);
        assert!(floor.seal_ns_per_byte > 0.0 && floor.open_ns_per_byte > 0.0);
    }
}

#[test]
fn what_can_not_be_measured_is_refused() {
    assert!(refusal(asked("rot13", 1)).contains("aes256-cbc"));
    assert!(refusal(asked("chacha20", 0)).starts_with("bytes:"));
    assert!(refusal(message::Floor { mac: Some("crc32".into()), ..asked("aes256-cbc", 1) }).contains("hmac-sha512"));
    assert!(refusal(message::Floor { mac: Some("hmac-sha1".into()), ..asked("aes256-gcm", 1) }).starts_with("mac:"));
    assert!(refusal(message::Floor { unit: Some(4001), ..asked("aes256-cbc", 1) }).contains("a multiple of 16"));
    for unit in [0, MOST_UNIT + 16] {
        assert!(refusal(message::Floor { unit: Some(unit), ..asked("aes256-ctr", 1) }).starts_with("unit:"));
    }
    assert!(measure(&message::Floor { unit: Some(4001), ..asked("aes256-ctr", 1) }).is_ok());
}
