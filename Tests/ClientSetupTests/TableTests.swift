@testable import ClientSetup
import Testing

extension Tool: CustomTestStringConvertible {
    package var testDescription: String { name }
}

@Suite("Client setup: the table of tools")
struct ToolTableTests {
    static let variables = Set(SetupVariable.all.map(\.name))

    @Test func `names are unique`() {
        #expect(Set(Tool.all.map(\.name)).count == Tool.all.count)
        #expect(Self.variables.count == SetupVariable.all.count)
    }

    static func isSet(_ source: Tool.Source) -> Bool {
        guard case .variable(let name, _) = source else { return false }
        return variables.contains(name)
    }

    static func hasStep(_ tool: Tool) -> Bool { SetupStep.all.contains { $0.tools.contains(tool.name) } }

    /// What needs a hand, and says so in its traps.
    static let byHand: Set<String> = ["docker", "gRPC"]

    @Test(arguments: Tool.all) func `setup.sh tells each tool of the proxy`(_ tool: Tool) {
        guard !Self.byHand.contains(tool.name) else { return #expect(!tool.traps.isEmpty) }
        #expect(tool.proxy.contains(where: Self.isSet) || Self.hasStep(tool))
    }

    @Test(arguments: Tool.all) func `setup.sh makes each tool trust the authority`(_ tool: Tool) {
        guard !Self.byHand.contains(tool.name) else { return }
        #expect(
            tool.authority.contains(where: Self.isSet) || tool.authority.contains(.systemStore) || Self.hasStep(tool))
    }

    @Test func `every variable that is set is of a tool`() {
        let known = Tool.all.flatMap { $0.proxy + $0.authority }.compactMap { source -> String? in
            guard case .variable(let name, _) = source else { return nil }
            return name
        }
        let rest = Self.variables.subtracting(known).subtracting(["no_proxy", "NO_PROXY"])
        #expect(rest.isEmpty)
    }

    @Test func `every step is for a tool`() {
        for step in SetupStep.all {
            #expect(step.tools.allSatisfy { name in Tool.all.contains { $0.name == name } }, "\(step)")
        }
    }

    @Test func `the files that variables name come last`() {
        let kinds = SetupVariable.all.map(\.needsAuthority)
        #expect(kinds == kinds.sorted { !$0 && $1 })
    }
}
