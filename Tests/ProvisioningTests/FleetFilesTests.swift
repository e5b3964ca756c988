import Foundation
import Testing

@testable import Provisioning
@testable import Settings

@Suite("Provisioning: the files of a fleet")
struct FleetFilesTests {
    private func with(_ body: (String) throws -> Void) throws {
        let path = NSTemporaryDirectory() + "larder-fleet-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try body(path)
    }

    /// What is said of a fleet with these files, or nil if nothing is wrong. A file that is nil does not exist.
    private func fault(
        _ url: String = "redis://r", secret: String?, password: String?? = .none, authorities: String?? = .none
    ) throws -> String? {
        var said: String?
        try with { path in
            var settings = FleetSettings()
            settings.redis = RedisURL(url)
            settings.node = "a"
            func file(_ name: String, _ text: String?) throws -> String {
                if let text { try text.write(toFile: "\(path)/\(name)", atomically: false, encoding: .utf8) }
                return "\(path)/\(name)"
            }
            settings.secretFile = try file("secret", secret)
            if let password { settings.passwordFile = try file("password", password) }
            if let authorities { settings.authorityFile = try file("ca.pem", authorities) }
            var configuration = Configuration()
            configuration.fleet = settings
            do throws(ProvisioningFault) {
                #expect(try readFleet(configuration) != nil)
            } catch { said = "\(error.key): \(error.message)".replacingOccurrences(of: path, with: "DIR") }
        }
        return said
    }

    static let secret = String(repeating: "s", count: 32)

    @Test func `a Larder without a fleet reads nothing`() throws {
        #expect(try readFleet(Configuration()) == nil)
    }

    @Test func `files that are right`() throws {
        #expect(try fault(secret: Self.secret) == nil)
        #expect(try fault(secret: Self.secret + "\r\nmore", password: "p\n") == nil)
        #expect(try fault("rediss://r", secret: Self.secret + "\n") == nil)
    }

    @Test func `files that are wrong`() throws {
        let short = "fleet.secret_file: DIR/secret: its first line has 31 bytes and not 32 or more"
        #expect(try fault(secret: String(Self.secret.dropLast()) + "\n") == short)
        #expect(try fault(secret: String(Self.secret.dropLast()) + "\n" + Self.secret) == short)
        #expect(try fault(secret: "") == short.replacingOccurrences(of: "31", with: "0"))
        #expect(try fault(secret: nil)?.hasPrefix("fleet.secret_file: DIR/secret") == true)
        #expect(
            try fault(secret: Self.secret, password: .some(nil))?.hasPrefix("fleet.redis.password_file: DIR/password")
                == true)
        #expect(
            try fault(secret: Self.secret, password: "\nx")
                == "fleet.redis.password_file: DIR/password: its first line is empty")
        #expect(
            try fault("rediss://r", secret: Self.secret, authorities: .some(nil))?.hasPrefix(
                "fleet.redis.ca_file: DIR/ca.pem")
                == true)
        #expect(
            try fault("rediss://r", secret: Self.secret, authorities: "no PEM")?.hasPrefix("fleet.redis.ca_file: ")
                == true)
    }

    @Test func `check says what is wrong with files`() throws {
        try with { path in
            func errors() -> [String] {
                let text = "workers: 1\nfleet:\n  redis: { url: redis://r }\n  secret_file: \(path)/secret\n"
                var reading = readConfiguration(text: Array(text.utf8), name: "x.yaml")
                reading.checkPreparation { _, _, _, _ in }
                #expect((reading.configuration == nil) == !reading.errors.isEmpty)
                return reading.errors.map { "\($0)".replacingOccurrences(of: path, with: "DIR") }
            }
            #expect(errors() == ["x.yaml:4: fleet.secret_file: DIR/secret cannot be read: No such file or directory"])
            try "short".write(toFile: "\(path)/secret", atomically: false, encoding: .utf8)
            #expect(
                errors() == [
                    "x.yaml:4: fleet.secret_file: DIR/secret: its first line has 5 bytes and not 32 or more; openssl rand -hex 32 makes one"
                ])
            try Self.secret.write(toFile: "\(path)/secret", atomically: false, encoding: .utf8)
            #expect(errors() == [])
        }
    }
}
