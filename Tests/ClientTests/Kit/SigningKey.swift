import Foundation
import Testing

/// A key of GnuPG, with which a repository signs its index.
struct SigningKey: Sendable {
    let place: Workplace

    static let programs = ["gpg", "gpg-agent", "gpgconf", "gpgv"]

    /// The key of the workplace, made when it is first asked for.
    static func take(in place: Workplace) async throws -> SigningKey {
        let key = SigningKey(place: place)
        guard place.bytes("key.gpg").isEmpty else { return key }
        let directory = try place.makeDirectory("gnupg")
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: directory)
        try await key.gpg(
            ["--passphrase", "", "--quick-generate-key", "A Tester <t@example.org>", "ed25519", "sign", "never"])
        try await key.gpg(["--export", "--output", key.binary])
        try await key.gpg(["--armor", "--export", "--output", key.armoured])
        return key
    }

    /// Files with the public key.
    var binary: String { place.path("key.gpg") }
    var armoured: String { place.path("key.asc") }

    /// Writes the file again with the signature around it.
    func sign(_ file: String, around signed: String) async throws {
        try await gpg(["--clearsign", "--output", place.path(signed), place.path(file)])
    }

    /// Writes the signature alone.
    func sign(_ file: String, beside signature: String) async throws {
        try await gpg(["--armor", "--detach-sign", "--output", place.path(signature), place.path(file)])
    }

    /// The agent that GnuPG starts ends with it.
    private func gpg(_ words: [String]) async throws {
        let home = ["--homedir", place.path("gnupg")]
        let done = try await place.run("gpg", home + ["--batch", "--yes"] + words)
        try #require(done.status == 0, "gpg \(words): \(done)")
        _ = try await place.run("gpgconf", home + ["--kill", "gpg-agent"])
    }
}
