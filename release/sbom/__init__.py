"""What a wheel is made of, as a CycloneDX document (an SBOM): each package with version, licence, checksum, and what it needs.

PYTHONPATH=release python -m sbom agent --target x86_64-unknown-linux-gnu -o FILE     the Rust agent
PYTHONPATH=release python -m sbom python --jar JAR -o FILE                            the Python package with the Java agent
PYTHONPATH=release python -m sbom check WHEEL...                                      the documents inside of wheels
"""
