"""The papers whose benchmarks can be built or imported, as BibTeX."""

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

WINOGROUND: Final = """\
@inproceedings{thrush2022winoground,
  title     = {Winoground: Probing Vision and Language Models for Visio-Linguistic
               Compositionality},
  author    = {Thrush, Tristan and Jiang, Ryan and Bartolo, Max and Singh, Amanpreet and
               Williams, Adina and Kiela, Douwe and Ross, Candace},
  booktitle = {Proceedings of the IEEE/CVF Conference on Computer Vision and Pattern Recognition},
  year      = {2022}
}"""

VALSE: Final = """\
@inproceedings{parcalabescu2022valse,
  title     = {{VALSE}: A Task-Independent Benchmark for Vision and Language Models Centered on
               Linguistic Phenomena},
  author    = {Parcalabescu, Letitia and Cafagna, Michele and Muradjan, Lilitta and Frank, Anette
               and Calixto, Iacer and Gatt, Albert},
  booktitle = {Proceedings of the 60th Annual Meeting of the Association for Computational
               Linguistics},
  year      = {2022}
}"""

SUGAR_CREPE: Final = """\
@inproceedings{hsieh2023sugarcrepe,
  title     = {{SugarCrepe}: Fixing Hackable Benchmarks for Vision-Language Compositionality},
  author    = {Hsieh, Cheng-Yu and Zhang, Jieyu and Ma, Zixian and Kembhavi, Aniruddha and
               Krishna, Ranjay},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2023}
}"""

SUGAR_CREPE_PLUS: Final = """\
@inproceedings{dumpala2024sugarcrepe,
  title     = {{SUGARCREPE++} Dataset: Vision-Language Model Sensitivity to Semantic and Lexical
               Alterations},
  author    = {Dumpala, Sri Harsha and Jaiswal, Aman and Sastry, Chandramouli and Milios,
               Evangelos and Oore, Sageev and Sajjad, Hassan},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2024}
}"""

ARO: Final = """\
@inproceedings{yuksekgonul2023when,
  title     = {When and Why Vision-Language Models Behave like Bags-Of-Words, and What to Do
               About It?},
  author    = {Yuksekgonul, Mert and Bianchi, Federico and Kalluri, Pratyusha and Jurafsky, Dan
               and Zou, James},
  booktitle = {International Conference on Learning Representations},
  year      = {2023}
}"""

VL_CHECKLIST: Final = """\
@inproceedings{zhao2022vlchecklist,
  title     = {{VL-CheckList}: Evaluating Pre-trained Vision-Language Models with Objects,
               Attributes and Relations},
  author    = {Zhao, Tiancheng and Zhang, Tianqi and Zhu, Mingwei and Shen, Haozhan and Lee,
               Kyusong and Lu, Xiaopeng and Yin, Jianwei},
  booktitle = {Proceedings of the 2022 Conference on Empirical Methods in Natural Language
               Processing: System Demonstrations},
  year      = {2022}
}"""

BIVLC: Final = """\
@inproceedings{miranda2024bivlc,
  title     = {{BiVLC}: Extending Vision-Language Compositionality Evaluation with Text-to-Image
               Retrieval},
  author    = {Miranda, Imanol and Salaberria, Ander and Agirre, Eneko and Azkune, Gorka},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2024}
}"""

NATURAL_BENCH: Final = """\
@inproceedings{li2024naturalbench,
  title     = {{NaturalBench}: Evaluating Vision-Language Models on Natural Adversarial Samples},
  author    = {Li, Baiqi and Lin, Zhiqiu and Peng, Wenxuan and Nyandwi, Jean de Dieu and Jiang,
               Daniel and Ma, Zixian and Khanuja, Simran and Krishna, Ranjay and Neubig, Graham
               and Ramanan, Deva},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2024}
}"""

VISMIN: Final = """\
@inproceedings{awal2024vismin,
  title     = {{VisMin}: Visual Minimal-Change Understanding},
  author    = {Awal, Rabiul and Ahmadi, Saba and Zhang, Le and Agrawal, Aishwarya},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2024}
}"""

CONME: Final = """\
@inproceedings{huang2024conme,
  title     = {{ConMe}: Rethinking Evaluation of Compositional Reasoning for Modern {VLMs}},
  author    = {Huang, Irene and Lin, Wei and Mirza, M. Jehanzeb and Hansen, Jacob A. and Doveh,
               Sivan and Butoi, Victor Ion and Herzig, Roei and Arbelle, Assaf and Kuehne, Hilde
               and Darrell, Trevor and Gan, Chuang and Oliva, Aude and Feris, Rogerio and
               Karlinsky, Leonid},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2024}
}"""

MMVP: Final = """\
@inproceedings{tong2024eyes,
  title     = {Eyes Wide Shut? Exploring the Visual Shortcomings of Multimodal {LLMs}},
  author    = {Tong, Shengbang and Liu, Zhuang and Zhai, Yuexiang and Ma, Yi and LeCun, Yann and
               Xie, Saining},
  booktitle = {Proceedings of the IEEE/CVF Conference on Computer Vision and Pattern Recognition},
  year      = {2024}
}"""

COCO_COUNTERFACTUALS: Final = """\
@inproceedings{le2023coco,
  title     = {{COCO-Counterfactuals}: Automatically Constructed Counterfactual Examples for
               Image-Text Pairs},
  author    = {Le, Tiep and Lal, Vasudev and Howard, Phillip},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2023}
}"""
