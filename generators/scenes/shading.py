"""Builds the node graphs of shaders in Blender."""

from collections.abc import Mapping
from typing import Any


class Graph:
    """The node graph of a material or a world, emptied.

    Args:
      owner: the material or world in Blender.
    """

    def __init__(self, owner: Any) -> None:
        """Removes all nodes."""
        owner.use_nodes = True
        self.tree = owner.node_tree
        self.tree.nodes.clear()

    def node(self, kind: str, inputs: Mapping[Any, Any], **properties: Any) -> Any:
        """Adds a node and returns it.

        Args:
          kind: its type in Blender, without `ShaderNode`.
          inputs: by name or number, a value, or the output of another node.
          properties: further properties of the node.
        """
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
        """Returns the output of a node that calculates with numbers."""
        inputs = dict(enumerate(values))
        return self.node("Math", inputs, operation=operation, use_clamp=clamp).outputs[0]

    def vector(self, operation: str, *values: Any) -> Any:
        """Returns the output of a node that calculates with vectors."""
        return self.node("VectorMath", dict(enumerate(values)), operation=operation).outputs[0]

    def scaled(self, vector: Any, factor: Any) -> Any:
        """Returns a vector times a number."""
        inputs = {"Vector": vector, "Scale": factor}
        return self.node("VectorMath", inputs, operation="SCALE").outputs[0]

    def turned(self, vector: Any, angle: float) -> Any:
        """Returns a vector turned about the vertical, in radians, counter-clockwise from above."""
        inputs = {"Vector": vector, "Angle": angle}
        return self.node("VectorRotate", inputs, rotation_type="Z_AXIS").outputs[0]

    def mixed(self, share: Any, first: Any, second: Any) -> Any:
        """Returns a colour, which for a share of 1 is the second one."""
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
        """Returns a number that rises smoothly from 0 to 1 while a value does from low to high."""
        inputs = {"Value": value, "From Min": low, "From Max": high}
        node = self.node("MapRange", inputs, interpolation_type="SMOOTHSTEP")
        return node.outputs["Result"]
