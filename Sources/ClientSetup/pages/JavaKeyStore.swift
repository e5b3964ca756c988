package import Message

/// A trust store for Java: certificates in a key store of type JKS. Every JDK reads it without an option that names the type.
///
/// The format is that of `sun.security.provider.JavaKeyStore`. Numbers are big-endian:
///
///     magic 0xFEEDFEED, version 2, number of entries,
///     for each: tag 2, alias, time in ms since 1970 (8 bytes), "X.509", length, certificate in DER,
///     SHA-1 of: password in UTF-16, "Mighty Aphrodite", all bytes before
///
/// A string is its length in two bytes and its bytes in UTF-8. The digest shows damage, and nothing else: the password is known to all.
package enum JavaKeyStore {
    /// The password that JDKs give their own trust store.
    package static let password = "changeit"

    /// An entry: the name under which `keytool` lists it, and the certificate in DER.
    package struct Entry: Equatable, Sendable {
        package let alias: String
        package let certificate: [UInt8]

        package init(alias: String, certificate: [UInt8]) {
            precondition(alias.utf8.count < 1 << 16 && alias.utf8.allSatisfy { $0 < 0x80 }, "an alias is short ASCII")
            self.alias = alias
            self.certificate = certificate
        }
    }

    /// - Parameters:
    ///   - entries: no two have the same alias.
    ///   - now: the time of all entries.
    ///   - sha1: computes SHA-1 (FIPS 180-4), which the format demands.
    package static func encode(_ entries: [Entry], now: WallTime, sha1: ([UInt8]) -> [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        append(UInt32(0xFEED_FEED), to: &bytes)
        append(UInt32(2), to: &bytes)
        append(UInt32(entries.count), to: &bytes)
        for entry in entries {
            append(UInt32(2), to: &bytes)
            append(entry.alias, to: &bytes)
            append(UInt64(max(0, now.secondsSinceEpoch)) * 1000, to: &bytes)
            append("X.509", to: &bytes)
            append(UInt32(entry.certificate.count), to: &bytes)
            bytes += entry.certificate
        }
        let salt = password.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } + Array("Mighty Aphrodite".utf8)
        return bytes + sha1(salt + bytes)
    }

    private static func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
        for shift in stride(from: number.bitWidth - 8, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }

    private static func append(_ text: String, to bytes: inout [UInt8]) {
        append(UInt16(text.utf8.count), to: &bytes)
        bytes += text.utf8
    }
}
