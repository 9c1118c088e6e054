"""Give objects of photographic scenes a visible material: glass, metal, rubber or wood.

Without a named colour, each material has its natural one: clear glass, steel, nearly black rubber,
brown wood with a grain. A colour tints it.

Glass is thin: light passes straight through, so objects behind it show at the few samples rendered,
and its shadow is light. Blender's own transparency would leave the object out of the instance mask;
refraction with an index of 1 looks the same and keeps it in.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from eqforge.generators.scenes.surfaces import changed_slots
from eqforge.schemas.records.scenes import SurfaceMaterial, Vector


class Graph:
    """The emptied node graph of a material or a world in Blender."""

    def __init__(self, owner: Any) -> None:
        owner.use_nodes = True
        self.tree = owner.node_tree
        self.tree.nodes.clear()

    def node(self, kind: str, inputs: Mapping[Any, Any], **properties: Any) -> Any:
        node = self.tree.nodes.new(f"ShaderNode{kind}")
        for name, value in properties.items():
            setattr(node, name, value)
        for key, value in inputs.items():
            if hasattr(value, "is_linked"):
                self.tree.links.new(value, node.inputs[key])
            else:
                node.inputs[key].default_value = value
        return node

    def math(self, operation: str, *values: Any, clamp: bool = False) -> Any:
        inputs = dict(enumerate(values))
        return self.node("Math", inputs, operation=operation, use_clamp=clamp).outputs[0]

    def vector(self, operation: str, *values: Any) -> Any:
        return self.node("VectorMath", dict(enumerate(values)), operation=operation).outputs[0]

    def scaled(self, vector: Any, factor: Any) -> Any:
        inputs = {"Vector": vector, "Scale": factor}
        return self.node("VectorMath", inputs, operation="SCALE").outputs[0]

    def turned(self, vector: Any, angle: float) -> Any:
        """Rotate a vector about the vertical, counter-clockwise from above, in radians."""
        inputs = {"Vector": vector, "Angle": angle}
        return self.node("VectorRotate", inputs, rotation_type="Z_AXIS").outputs[0]

    def mixed(self, share: Any, first: Any, second: Any) -> Any:
        inputs = {"Factor": share, "A": first, "B": second}
        node = self.node("Mix", {}, data_type="RGBA")
        for name, value in inputs.items():
            socket = next(each for each in node.inputs if each.name == name and each.enabled)
            if hasattr(value, "is_linked"):
                self.tree.links.new(value, socket)
            else:
                socket.default_value = value
        return next(each for each in node.outputs if each.enabled)

    def ramp(self, value: Any, low: float, high: float) -> Any:
        inputs = {"Value": value, "From Min": low, "From Max": high}
        node = self.node("MapRange", inputs, interpolation_type="SMOOTHSTEP")
        return node.outputs["Result"]


NATURAL: Mapping[SurfaceMaterial, Vector] = {
    "rubber": (0.018, 0.018, 0.02),
    "metal": (0.78, 0.78, 0.8),
    "glass": (0.86, 0.93, 0.91),
    "wooden": (0.36, 0.17, 0.065),
}

GLASS_PATHS = 24  # surfaces of glass that light may go through: a mug before a bowl before a vase
EDGE_M = 0.035  # width of the edges of glass, which are seen as bright and dark lines
_THICK = 0.4  # how much of the light comes through a rim, where its way through the glass is long
_MIRRORING = 0.92  # share of metal that mirrors; the rest is as white things are
_STRAIGHT = 1.0  # index of refraction that does not bend light


def apply_look(
    obj: Any, colour: Vector | None, material: SurfaceMaterial, parts: Collection[str] | None
) -> None:
    import bpy

    surface = bpy.data.materials.new(material)
    _LOOKS[material](Graph(surface), NATURAL[material] if colour is None else colour, obj)
    for slot in changed_slots(obj, parts):
        slot.material = surface


def _glass(graph: Graph, colour: Vector, _: Any) -> None:
    """Make thin glass: clear when seen head-on, darker and shiny at its rims.

    Light rays pass without reflection, which would only add noise.
    """
    clear, thick = (*colour, 1.0), (*(_THICK * value**2 for value in colour), 1.0)
    facing = graph.node("LayerWeight", {"Blend": 0.5}).outputs["Facing"]
    # How near a sharp edge is: 1 on it, 0 on a face or a smooth curve.
    rounded = _rounded(graph)
    true = graph.node("NewGeometry", {}).outputs["Normal"]
    bent = graph.node("VectorMath", {0: rounded, 1: true}, operation="DOT_PRODUCT")
    edge = graph.ramp(graph.math("SUBTRACT", 1.0, bent.outputs["Value"]), 0.02, 0.25)
    rim = graph.math("MAXIMUM", graph.math("POWER", facing, 2.5), edge)
    body = graph.mixed(rim, clear, thick)
    through = graph.node("BsdfRefraction", {"Color": body, "Roughness": 0.0, "IOR": _STRAIGHT})
    shine = graph.node("BsdfGlossy", {"Color": (1.0, 1.0, 1.0, 1.0), "Roughness": 0.02})
    fresnel = graph.node("Fresnel", {"IOR": 1.5}).outputs[0]
    outside = graph.math("SUBTRACT", 1.0, graph.node("NewGeometry", {}).outputs["Backfacing"])
    share = graph.math("MULTIPLY", graph.math("MULTIPLY_ADD", fresnel, 1.3, 0.06), outside)
    seen = graph.node("MixShader", {0: share, 1: through.outputs[0], 2: shine.outputs[0]})
    passing = graph.node("BsdfTransparent", {"Color": (*(0.9 * value for value in colour), 1.0)})
    path = graph.node("LightPath", {})
    lights = graph.math("MAXIMUM", path.outputs["Is Shadow Ray"], path.outputs["Is Diffuse Ray"])
    both = graph.node("MixShader", {0: lights, 1: seen.outputs[0], 2: passing.outputs[0]})
    graph.node("OutputMaterial", {"Surface": both.outputs[0]})


def _rounded(graph: Graph) -> Any:
    return graph.node("Bevel", {"Radius": EDGE_M}, samples=4).outputs[0]


def _metal(graph: Graph, colour: Vector, _: Any) -> None:
    """Make steel that is not quite a mirror: on grass, a mirror would look as green as glass."""
    inputs = {"Base Color": (*colour, 1.0), "Metallic": _MIRRORING, "Roughness": 0.2}
    inputs["Normal"] = _rounded(graph)
    _finish(graph, inputs)


def _rubber(graph: Graph, colour: Vector, _: Any) -> None:
    inputs = {"Base Color": (*colour, 1.0), "Roughness": 0.85, "Specular IOR Level": 0.25}
    _finish(graph, inputs)


def _wood(graph: Graph, colour: Vector, obj: Any) -> None:
    size = float(np.ptp(np.array(obj.bound_box), axis=0).max())
    place = graph.node("TexCoord", {}).outputs["Object"]
    grain = graph.node("Mapping", {"Vector": place, "Rotation": (0.12, 0.2, 0.4)}).outputs[0]
    along = graph.vector("MULTIPLY", grain, (1 / size, 1 / size, 0.12 / size))
    rings = graph.node(
        "TexWave",
        {"Vector": along, "Scale": 3.2, "Distortion": 5.0, "Detail": 3.0, "Detail Scale": 1.5},
        wave_type="RINGS",
        rings_direction="Z",
    ).outputs["Fac"]
    streaks = graph.node("TexNoise", {"Vector": along, "Scale": 42.0, "Detail": 2.0}).outputs[0]
    shade = graph.math("MULTIPLY_ADD", streaks, 0.45, graph.math("MULTIPLY", rings, 0.6))
    light = (*(min(1.45 * value, 1.0) for value in colour), 1.0)
    dark = (*(0.3 * value for value in colour), 1.0)
    _finish(graph, {"Base Color": graph.mixed(shade, light, dark), "Roughness": 0.5})


def _finish(graph: Graph, inputs: Mapping[str, Any]) -> None:
    surface = graph.node("BsdfPrincipled", inputs)
    graph.node("OutputMaterial", {"Surface": surface.outputs[0]})


_LOOKS: Mapping[SurfaceMaterial, Callable[[Graph, Vector, Any], None]] = {
    "rubber": _rubber,
    "metal": _metal,
    "glass": _glass,
    "wooden": _wood,
}
