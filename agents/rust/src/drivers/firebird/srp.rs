//! Computes SRP's proof and session key from user, password and the server's challenge, as Firebird's Srp plugins do.
//!
//! SRP-6a over a group of 1024 bits with SHA-1, with three peculiarities of Firebird: numbers are hashed without leading
//! zeros, the exponent is reduced by the modulus, and the proof takes H(N) to the power of H(g) instead of ⊕. The
//! plugin's name determines the hash of the proof itself.

use crate::failure::{Failure, Result};
use openssl::bn::{BigNum, BigNumContext};
use openssl::error::ErrorStack;
use openssl::hash::{MessageDigest, hash};
use openssl::sha::sha1;

const PRIME: &str = "E67D2E994B2F900C3F41F08F5BB2627ED0D49EE1FE767A52EFCD565CD6E768812C3E1E9CE8F0A8BEA6CB13CD29DDEBF7\
A96D4A93B55D488DF099A15C89DCB0640738EB2CBDD9A8F7BAB561AB1B0DC1C6CDABF303264A08D1BCA932D1F1EE428B619D970F342ABA9A65793B8B\
2F041AE5364350C16F735F56ECBCA87BD57B29E7";
const KEY_BYTES: usize = 128;

/// Supported plugins, the best first.
pub const PLUGINS: [&str; 5] = ["Srp256", "Srp512", "Srp384", "Srp224", "Srp"];

/// One login's secrets.
pub struct Srp {
    private: BigNum,
    public: BigNum,
    prime: BigNum,
}

/// The response to the server's challenge.
pub struct Answer {
    /// Hexadecimal, as it is sent.
    pub proof: String,
    pub session_key: [u8; 20],
}

impl Srp {
    pub fn new() -> Result<Srp> {
        let mut random = [0; KEY_BYTES];
        openssl::rand::rand_bytes(&mut random).map_err(failed)?;
        Srp::with_private(&random)
    }

    fn with_private(bytes: &[u8]) -> Result<Srp> {
        let make = || -> std::result::Result<Srp, ErrorStack> {
            let mut context = BigNumContext::new()?;
            let prime = BigNum::from_hex_str(PRIME)?;
            let mut private = BigNum::new()?;
            private.nnmod(&*BigNum::from_slice(bytes)?, &prime, &mut context)?;
            let mut public = BigNum::new()?;
            public.mod_exp(&*BigNum::from_u32(2)?, &private, &prime, &mut context)?;
            Ok(Srp { private, public, prime })
        };
        make().map_err(failed)
    }

    /// Our public key, as it is sent.
    pub fn public(&self) -> Result<String> {
        text(&self.public).map_err(failed)
    }

    /// `user` as the server stores it (upper case unless quoted); `salt` and `server_public` as received.
    pub fn answer(&self, plugin: &str, user: &str, password: &str, salt: &[u8], server_public: &str) -> Result<Answer> {
        let digest = match plugin {
            "Srp" => MessageDigest::sha1(),
            "Srp224" => MessageDigest::sha224(),
            "Srp384" => MessageDigest::sha384(),
            "Srp512" => MessageDigest::sha512(),
            _ => MessageDigest::sha256(),
        };
        // `from_hex_str` panics at a NUL, and takes only the beginning of what has other characters.
        if server_public.is_empty() || !server_public.bytes().all(|each| each.is_ascii_hexdigit()) {
            return Err(Failure::connect("the server's challenge is not a number"));
        }
        let server_public = BigNum::from_hex_str(server_public).map_err(failed)?;
        self.compute(digest, user, password, salt, &server_public).map_err(failed)
    }

    fn compute(
        &self,
        digest: MessageDigest,
        user: &str,
        password: &str,
        salt: &[u8],
        server_public: &BigNum,
    ) -> std::result::Result<Answer, ErrorStack> {
        let (prime, mut context) = (&self.prime, BigNumContext::new()?);
        let generator = BigNum::from_u32(2)?;
        let padded = [vec![0; KEY_BYTES - 1], vec![2]].concat();
        let k = BigNum::from_slice(&sha1(&[prime.to_vec(), padded].concat()))?;
        let u = BigNum::from_slice(&sha1(&[self.public.to_vec(), server_public.to_vec()].concat()))?;
        let inner = sha1(format!("{user}:{password}").as_bytes());
        let x = BigNum::from_slice(&sha1(&[salt, &inner].concat()))?;

        // S = (B − k·gˣ) ^ (a + u·x)
        let (mut gx, mut kgx, mut base) = (BigNum::new()?, BigNum::new()?, BigNum::new()?);
        gx.mod_exp(&generator, &x, prime, &mut context)?;
        kgx.mod_mul(&k, &gx, prime, &mut context)?;
        base.mod_sub(server_public, &kgx, prime, &mut context)?;
        let (mut ux, mut exponent, mut secret) = (BigNum::new()?, BigNum::new()?, BigNum::new()?);
        ux.mod_mul(&u, &x, prime, &mut context)?;
        exponent.mod_add(&self.private, &ux, prime, &mut context)?;
        secret.mod_exp(&base, &exponent, prime, &mut context)?;
        let session_key = sha1(&secret.to_vec());

        // M = H(H(N)^H(g), H(user), salt, A, B, K)
        let hash_of_prime = BigNum::from_slice(&sha1(&prime.to_vec()))?;
        let hash_of_generator = BigNum::from_slice(&sha1(&[2]))?;
        let mut group = BigNum::new()?;
        group.mod_exp(&hash_of_prime, &hash_of_generator, prime, &mut context)?;
        let name = BigNum::from_slice(&sha1(user.as_bytes()))?;
        let parts = [
            &group.to_vec(),
            &name.to_vec(),
            salt,
            &self.public.to_vec(),
            &server_public.to_vec(),
            session_key.as_slice(),
        ];
        let proof = hash(digest, &parts.concat())?;
        Ok(Answer { proof: text(&BigNum::from_slice(&proof)?)?, session_key })
    }
}

/// Upper-case hexadecimal without leading zeros.
fn text(number: &BigNum) -> std::result::Result<String, ErrorStack> {
    let digits = number.to_hex_str()?.to_uppercase();
    let stripped = digits.trim_start_matches('0');
    Ok(if stripped.is_empty() { "0".to_string() } else { stripped.to_string() })
}

fn failed(error: ErrorStack) -> Failure {
    Failure::internal(format!("SRP failed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A login computed independently of this code, on the server's side: S = (A·vᵘ)ᵇ.
    const SALT: &[u8] = b"02E268803000000079A478A700000002D1A6979000000026E1601C000000054F";
    const SERVER: &str = "2C412E3578F81702B054D278D101945784D574B8D0B7760D6BEA6D94184F59A06AB389D73DEC928B29A94F0AEFE869C1\
94DCBB40173CD1A6899E5B4F62E65A53CC1CE4CE5B93177AA81F77DCA2817B4C4639F070B2EAABCA636A9F2EEC887A5279F65CC29172F1078E64B57D\
164D14C8AD78E1C753E5630E69C8F167315584E2";
    const PROOFS: [(&str, &str); 5] = [
        ("Srp", "D88AEDE40B2A17C5CA7675BF758318DD02ABA8E8"),
        ("Srp224", "DF98B53F366BDF19E5B78F8CDD5D7C3AC7F3E80C1DB54924D637147E"),
        ("Srp256", "DBA947D15A987C01AAD52E58EAF7C2B716A683C3BF97BAC5F73759FAE96F903A"),
        ("Srp384", "71B0B15F3B55A6700621AFE5C3BD6E4C2453EC56F3E3BC6844C835592CBA11F7B16F5250D5B63892071809442C84ECB6"),
        (
            "Srp512",
            "BE0C5EB68F33D0D5EED25525609B45FEA6211B92D1727505E13514C73138A62DA7FE30DA3639AE752ECFBAABE08639F5F6BE628A82D9BD1B\
2EFC51B8060E45C5",
        ),
    ];

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_server_computes_the_same_proof_and_key() {
        let private: Vec<u8> = (1..=128).collect();
        let srp = Srp::with_private(&private).unwrap();
        let public = openssl::sha::sha256(srp.public().unwrap().as_bytes());
        assert_eq!(hex(&public), "9dad274fc96c1e4f6733d01ddd72ecd4ce8b930299a69e471140cb9219f16351");
        for (plugin, proof) in PROOFS {
            let answer = srp.answer(plugin, "CIPHERCOST", "secret", SALT, SERVER).unwrap();
            assert_eq!(answer.proof, proof, "{plugin}");
            assert_eq!(hex(&answer.session_key), "7a86b70f47cb55f99be10c0f9c038c6825bac1c4");
        }
    }

    #[test]
    fn every_login_has_a_key_of_its_own() {
        assert_ne!(Srp::new().unwrap().public().unwrap(), Srp::new().unwrap().public().unwrap());
    }

    #[test]
    fn a_challenge_that_is_not_a_number_is_an_error() {
        for challenge in ["no number", "12 and more", "12\0ab", ""] {
            assert!(Srp::new().unwrap().answer("Srp256", "U", "p", SALT, challenge).is_err(), "{challenge:?}");
        }
    }
}
