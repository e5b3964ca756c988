package import Credentials
import EventLoop
package import Origins
import Synchronization

/// The secrets of `credentials`, by the name of the credential. If one of them changes, all of that credential get a new number.
///
/// May be used by every thread.
package final class SecretShelf: Sendable {
    package struct Version: Sendable {
        fileprivate(set) var parts: [SecretPart: Secret]
        /// Unique in this process: with another number, what is known about the credential no longer holds.
        package fileprivate(set) var number: UInt64

        /// Empty if the credential has no such part.
        package subscript(_ part: SecretPart) -> Secret { parts[part] ?? Secret("") }
    }
    private let versions: Locked<[String: Version]>
    private static let lastNumber = Atomic<UInt64>(0)

    package init(_ secrets: [String: [SecretPart: Secret]] = [:]) {
        versions = Locked(secrets.mapValues { Version(parts: $0, number: SecretShelf.nextNumber()) })
    }

    /// Replaces a secret. Returns false if it is the same as before.
    package func replace(_ part: SecretPart, of name: String, by secret: Secret) -> Bool {
        versions.withLock { versions in
            guard var version = versions[name], version.parts[part] != secret else { return false }
            version.parts[part] = secret
            version.number = SecretShelf.nextNumber()
            versions[name] = version
            return true
        }
    }

    /// Gives the secrets of a credential a new number, so that nothing that was learnt with them holds.
    package func renew(_ name: String) { versions.withLock { $0[name]?.number = SecretShelf.nextNumber() } }

    /// Nil if it could not be read.
    package func secret(_ part: SecretPart, of name: String) -> Secret? {
        versions.withLock { $0[name]?.parts[part] }
    }

    package func version(of name: String) -> Version? { versions.withLock { $0[name] } }

    private static func nextNumber() -> UInt64 { lastNumber.add(1, ordering: .relaxed).newValue }
}
