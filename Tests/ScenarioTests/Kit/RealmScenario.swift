import Foundation
import ProgramUnderTest
import Settings
import Testing

/// Plays a scenario with one worker in a realm that knows the user `fleet`, whose password is `sesame`, and the service `HTTP/127.0.0.1`. Needs a process of
/// its own, because the library reads the way to its realm from the environment.
func scenarioInRealm(_ play: (Scenario, KerberosRealm) throws -> Void) throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-realm-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let realm = try KerberosRealm(in: directory.path)
    defer { realm.stop() }
    try realm.add("fleet", password: "sesame")
    try realm.add("HTTP/127.0.0.1")
    for (name, value) in realm.environment { unsafe setenv(name, value, 1) }
    try scenario({ configuration, _ in configuration.workers = .count(1) }) { try play($0, realm) }
}
