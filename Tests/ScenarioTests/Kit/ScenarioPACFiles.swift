import Foundation
import PACRunner
import ProgramUnderTest
import Routing
import Server
import Settings

/// What the program makes of the PAC files of `routes`. Only the program reads them again when they change, and fetches those of URLs: here a
/// test hands over what came.
final class ScenarioPACFiles {
    private var desks: [PACDesk] = []
    private var scripts: [PACSource: PACScript] = [:]

    func scripts(for configuration: Configuration) throws -> [PACSource: PACScript] {
        for case .script(let source, _) in configuration.routes.map(\.ways) {
            let (timeout, lifetime) = (configuration.pac.timeout, configuration.pac.lifetime)
            if let script = scripts[source] {
                script.adopt(timeout: timeout, lifetime: lifetime)
                continue
            }
            // The processes are those of the program, because this one is the tests.
            let desk = PACDesk(program: larderExecutable)
            desks.append(desk)
            switch source {
            case .file(let path):
                let text = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
                scripts[source] = try desk.open(path: path, script: text, timeout: timeout, lifetime: lifetime)
            case .url(let url):
                let download = PACDownload(url, refresh: configuration.pac.refresh)
                scripts[source] = desk.open(download, timeout: timeout, lifetime: lifetime)
            }
        }
        return scripts
    }

    func close() { for desk in desks { desk.close() } }
}
