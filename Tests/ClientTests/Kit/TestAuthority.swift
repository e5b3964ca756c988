import Foundation
import Testing

/// A certificate authority of one test, made with `openssl`, and the certificates that it signs.
struct TestAuthority: Sendable {
    let place: Workplace
    let name: String

    /// The authority's own certificate.
    var certificate: String { place.path("\(name).pem") }

    static func make(_ name: String, in place: Workplace) async throws -> TestAuthority {
        let authority = TestAuthority(place: place, name: name)
        try await authority.openssl(
            [
                "req", "-x509", "-subj", "/CN=\(name)", "-addext", "basicConstraints=critical,CA:TRUE", "-keyout",
                place.path("\(name).key"), "-out", authority.certificate,
            ] + authority.newKey)
        return authority
    }

    private var newKey: [String] {
        ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-config", "/dev/null"]
    }

    /// - Parameters:
    ///   - name: of the files, and the common name.
    ///   - names: as OpenSSL spells alternative names: `DNS:localhost`.
    /// - Returns: the paths of the certificate and of its key.
    @discardableResult
    func issue(_ name: String, for names: String) async throws -> (certificate: String, key: String) {
        let (certificate, key) = (place.path("\(name).crt"), place.path("\(name).key"))
        try await openssl(
            [
                "req", "-x509", "-subj", "/CN=\(name)", "-addext", "subjectAltName=\(names)", "-CA", self.certificate,
                "-CAkey", place.path("\(self.name).key"), "-keyout", key, "-out", certificate,
            ] + newKey)
        return (certificate, key)
    }

    /// Puts a certificate and its key into a PKCS#12 file with a password.
    func bundle(_ own: (certificate: String, key: String), password: String, options: [String] = []) async throws
        -> String
    {
        let path = place.path("bundle.p12")
        try await openssl(
            [
                "pkcs12", "-export", "-in", own.certificate, "-inkey", own.key, "-passout", "pass:\(password)", "-out",
                path,
            ]
                + options)
        return path
    }

    /// The text of a pin, as the manual says that it is made.
    static func pin(_ certificate: String, in place: Workplace) async throws -> String {
        let command =
            "openssl x509 -in \(certificate) -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64"
        let output = try await place.run("sh", ["-c", command])
        try #require(output.status == 0, "\(output)")
        return "sha256/" + output.out.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private func openssl(_ words: [String]) async throws {
        let output = try await place.run("openssl", words)
        try #require(output.status == 0, "\(output)")
    }
}
