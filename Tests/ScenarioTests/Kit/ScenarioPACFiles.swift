import Foundation
import ProgramUnderTest
import Routing
import Server
import Settings

/// What the program makes of the PAC files of `routes`. Only the program reads them again when they change.
final class ScenarioPACFiles {
    /// The processes are those of the program, because this one is the tests.
    private let desk = PACDesk(program: larderExecutable)
    private var scripts: [String: PACScript] = [:]

    func scripts(for configuration: Configuration) throws -> [String: PACScript] {
        for case .script(let path, _) in configuration.routes.map(\.ways) {
            let (timeout, lifetime) = (configuration.pac.timeout, configuration.pac.lifetime)
            if let script = scripts[path] {
                script.adopt(timeout: timeout, lifetime: lifetime)
            } else {
                let text = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
                scripts[path] = try desk.open(path: path, script: text, timeout: timeout, lifetime: lifetime)
            }
        }
        return scripts
    }

    func close() { desk.close() }
}
