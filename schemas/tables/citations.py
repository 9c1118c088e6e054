"""The papers whose benchmarks can be built, as BibTeX."""

from typing import Final

EQBEN: Final = """\
@inproceedings{wang2023equivariant,
  title     = {Equivariant Similarity for Vision-Language Foundation Models},
  author    = {Wang, Tan and Lin, Kevin and Li, Linjie and Lin, Chung-Ching and Yang, Zhengyuan and
               Zhang, Hanwang and Liu, Zicheng and Wang, Lijuan},
  booktitle = {Proceedings of the IEEE/CVF International Conference on Computer Vision},
  year      = {2023}
}"""

HARD_POSITIVES: Final = """\
@inproceedings{kamath2024hard,
  title     = {The Hard Positive Truth about Vision-Language Compositionality},
  author    = {Kamath, Amita and Hsieh, Cheng-Yu and Chang, Kai-Wei and Krishna, Ranjay},
  booktitle = {European Conference on Computer Vision},
  year      = {2024}
}"""

GRANULARITY: Final = """\
@inproceedings{hendriksen2025benchmark,
  title     = {Benchmark Granularity and Model Robustness for Image-Text Retrieval},
  author    = {Hendriksen, Mariya and Zhang, Shuo and Reinanda, Ridho and Yahya, Mohamed and
               Meij, Edgar and de Rijke, Maarten},
  booktitle = {Proceedings of the 48th International ACM SIGIR Conference on Research and
               Development in Information Retrieval},
  year      = {2025}
}"""

VLUE: Final = """\
@inproceedings{zhou2022vlue,
  title     = {{VLUE}: A Multi-Task Multi-Dimension Benchmark for Evaluating Vision-Language
               Pre-training},
  author    = {Zhou, Wangchunshu and Zeng, Yan and Diao, Shizhe and Zhang, Xinsong},
  booktitle = {International Conference on Machine Learning},
  year      = {2022}
}"""

SIMAT: Final = """\
@inproceedings{couairon2022embedding,
  title     = {Embedding Arithmetic of Multimodal Queries for Image Retrieval},
  author    = {Couairon, Guillaume and Douze, Matthijs and Cord, Matthieu and Schwenk, Holger},
  booktitle = {Proceedings of the IEEE/CVF Conference on Computer Vision and Pattern Recognition
               Workshops},
  year      = {2022}
}"""
