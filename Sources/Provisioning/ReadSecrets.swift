import Accounts
import Credentials
package import EventLoop
import LogIns
import Origins
import Secrets
package import Server
import Settings

/// Reads the secrets of `credentials`. A check leaves out those from descriptors: each can be read once, by `serve`.
func readSecrets(
    _ rules: [CredentialRule], _ preparation: inout Preparation
) throws(ProvisioningFault) -> SecretShelf {
    var secrets: [String: [SecretPart: Secret]] = [:]
    for rule in rules {
        secrets[rule.name] = [:]
        for (part, source) in rule.secrets.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            if preparation.isCheck, case .descriptor = source { continue }
            try preparation.attempt { () throws(ProvisioningFault) in
                do throws(SecretFailure) {
                    secrets[rule.name, default: [:]][part] = try readSecret(part, of: rule, from: source)
                } catch {
                    throw ProvisioningFault("credentials[\(rule.number)].\(part.rawValue)", "\(error)")
                }
            }
        }
    }
    return SecretShelf(secrets)
}

/// Why a secret cannot be used. Never shows it.
struct SecretFailure: Error, CustomStringConvertible {
    let description: String

    init(_ failure: ReadFailure, _ source: SecretSource) {
        description = "\(source) cannot be read: \(failure.text)"
    }

    init(_ description: String) { self.description = description }
}

private let commandTimeout = Duration.seconds(10)

private func readSecret(
    _ part: SecretPart, of rule: CredentialRule, from source: SecretSource
) throws(SecretFailure) -> Secret {
    let bytes: [UInt8]
    do throws(ReadFailure) {
        switch source {
        case .text(let text): bytes = text.bytes
        case .file(let path):
            var file = SecretFile(path: path, of: part)
            bytes = try file.readIfChanged() ?? []
        case .environment(let name): bytes = try readVariable(name)
        case .descriptor(let number): bytes = try InheritedSecrets.read(number)
        case .command(let words):
            bytes = try readOutput(of: words, bytesMax: SecretSource.bytesMax, timeout: commandTimeout)
        }
    } catch {
        throw SecretFailure(error, source)
    }
    return try check(bytes, part, of: rule, from: source)
}

/// The secret in what was read, if it can be sent.
private func check(
    _ bytes: [UInt8], _ part: SecretPart, of rule: CredentialRule, from source: SecretSource
) throws(SecretFailure) -> Secret {
    let secret: Secret
    do throws(SecretFault) {
        secret = try part == .keytab ? source.keytab(in: bytes) : source.secret(in: bytes)
    } catch {
        throw SecretFailure(error.text(of: source))
    }
    if part == .token, rule.means.placeholderPlaces != nil, secret.bytes.count < SecretMask.bytesMin {
        throw SecretFailure(
            "the secret from \(source) is shorter than \(SecretMask.bytesMin) bytes: in what comes back, it cannot be told from other text"
        )
    }
    do throws(CredentialFault) {
        switch part {
        case .password: _ = try basicAuthorization(user: "", password: secret)
        case .token where rule.means == .bearer: _ = try bearerAuthorization(token: secret)
        case .accessKey:
            let key = String(decoding: secret.bytes, as: UTF8.self)
            _ = try AWSCredential(accessKeyID: key, secretAccessKey: Secret(""), region: "-", service: "-")
        case .sessionToken:
            _ = try AWSCredential(
                accessKeyID: "-", secretAccessKey: Secret(""), sessionToken: secret, region: "-", service: "-")
        case .keytab, .token, .clientSecret, .tokenSecret, .secretKey: break
        }
    } catch {
        throw SecretFailure("the secret from \(source) cannot be sent: \(error.text)")
    }
    return secret
}

extension SecretFile {
    fileprivate init(path: String, of part: SecretPart) {
        if part == .keytab {
            self.init(path: path, .everything, bytesMax: SecretSource.keytabBytesMax)
        } else {
            self.init(path: path, bytesMax: SecretSource.bytesMax)
        }
    }
}

/// What descriptors gave. Each can be read once, so a reload uses what was read at the start.
private enum InheritedSecrets {
    private static let known = Locked<[Int32: [UInt8]]>([:])

    static func read(_ number: Int32) throws(ReadFailure) -> [UInt8] {
        if let line = known.withLock({ $0[number] }) { return line }
        let line = try readDescriptor(number, bytesMax: SecretSource.bytesMax)
        known.withLock { $0[number] = line }
        return line
    }
}

/// Looks every two seconds whether a file with a secret has changed, and reads it then. Used on the control thread.
package final class SecretWatch {
    private struct Place: Hashable {
        let credential: String
        let part: SecretPart
        let path: String
    }
    private var files: [Place: SecretFile] = [:]
    /// What was said about a place last: it is said once.
    private var complaints: [Place: String] = [:]
    private let snapshot: () -> Snapshot
    private let repeating: RepeatingTimer

    package init(on loop: EventLoop, of snapshot: @escaping () -> Snapshot) {
        repeating = RepeatingTimer(on: loop, every: .seconds(2))
        self.snapshot = snapshot
    }

    package func start() {
        repeating.start { [unowned self] in look() }
    }

    package func stop() { repeating.stop() }

    private func look() {
        let snapshot = snapshot()
        for rule in snapshot.configuration.credentials {
            for (part, source) in rule.secrets {
                if case .file(let path) = source {
                    look(at: Place(credential: rule.name, part: part, path: path), of: rule, snapshot.secrets)
                }
            }
        }
    }

    private func look(at place: Place, of rule: CredentialRule, _ secrets: SecretShelf) {
        let source = SecretSource.file(place.path)
        var file = files[place] ?? SecretFile(path: place.path, of: place.part)
        do throws(SecretFailure) {
            defer { files[place] = file }
            let bytes: [UInt8]?
            do throws(ReadFailure) {
                bytes = try file.readIfChanged()
            } catch {
                throw SecretFailure(error, source)
            }
            guard let bytes else { return }
            let secret = try check(bytes, place.part, of: rule, from: source)
            if secrets.replace(place.part, of: rule.name, by: secret) {
                Diagnostics.info("credential \(rule.name): \(source) has changed and was read")
            }
            complaints[place] = nil
        } catch {
            guard complaints.updateValue(error.description, forKey: place) != error.description else { return }
            Diagnostics.warning("credential \(rule.name): \(error); the earlier secret stays in use")
        }
    }
}
